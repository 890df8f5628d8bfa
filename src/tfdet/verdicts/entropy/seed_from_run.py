"""A seed that differs between runs: the time, a process id, or random bytes of the operating system.

Why: a generator repeats its numbers only with the same seed.
Example: `random.seed(time.time())`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

_RUN_DEPENDENT = (
    "time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.monotonic_ns",
    "os.getpid", "os.urandom", "uuid.uuid1", "uuid.uuid4", "secrets.randbits", "secrets.randbelow",
    "datetime.datetime.now", "datetime.datetime.utcnow", "id",
)  # fmt: skip
_SEEDING_FUNCTIONS = ("seed", "manual_seed", "manual_seed_all", "set_seed", "set_random_seed", "seed_everything",
            "default_rng", "RandomState", "SeedSequence", "Random", "PRNGKey")  # fmt: skip
_SEED_KEYWORDS = ("seed", "random_state", "seeds")


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        seeds = [keyword.value for keyword in call.keywords if keyword.arg in _SEED_KEYWORDS]
        seeds += call.args if text.name_of(call).rpartition(".")[2] in _SEEDING_FUNCTIONS else []
        if origin := next((name for seed in seeds for name in _run_dependent_calls(text, seed)), None):
            yield text.place(call, origin)


def _run_dependent_calls(text: UnitText, node: ast.expr) -> Iterator[str]:
    """Yield the names of calls with run-dependent results in an expression, or in the values of its variables."""
    variables = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    values = [value for variable in variables for value in text.names.assigned(variable) if value is not None]
    calls = (part for value in (node, *values) for part in ast.walk(value) if isinstance(part, ast.Call))
    return (name for call in calls if (name := text.name_of(call)) in _RUN_DEPENDENT)


RULE = Rule(
    "seed-from-run", "a seed that differs from run to run", "take a constant, or an argument that is printed", find
)
