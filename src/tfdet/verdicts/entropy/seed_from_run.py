"""A seed that is another one in each run: the time, the process, or the operating system's random bytes.

Why: a generator is as repeatable as its seed.
Example: `random.seed(time.time())`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

_DIFFERENT = (
    "time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.monotonic_ns",
    "os.getpid", "os.urandom", "uuid.uuid1", "uuid.uuid4", "secrets.randbits", "secrets.randbelow",
    "datetime.datetime.now", "datetime.datetime.utcnow", "id",
)  # fmt: skip
_SEEDERS = ("seed", "manual_seed", "manual_seed_all", "set_seed", "set_random_seed", "seed_everything",
            "default_rng", "RandomState", "SeedSequence", "Random", "PRNGKey")  # fmt: skip
_SEED_KEYWORDS = ("seed", "random_state", "seeds")


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        given = [word.value for word in call.keywords if word.arg in _SEED_KEYWORDS]
        given += call.args if text.name_of(call).rpartition(".")[2] in _SEEDERS else []
        if used := next((name for one in given for name in _different(text, one)), None):
            yield text.place(call, used)


def _different(text: UnitText, node: ast.expr) -> Iterator[str]:
    """The calls in an expression, or in what its name was set to, that give something else in each run."""
    named = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    origins = [one for name in named for one in text.names.assigned(name) if one is not None]
    inner = (part for one in (node, *origins) for part in ast.walk(one) if isinstance(part, ast.Call))
    return (name for part in inner if (name := text.name_of(part)) in _DIFFERENT)


RULE = Rule(
    "seed-from-run", "a seed that differs from run to run", "take a constant, or an argument that is printed", find
)
