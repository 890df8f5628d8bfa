"""Exact lines to make one TensorFlow deterministic, and the ops to avoid there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tfdet.matrix.devices import GPU
from tfdet.matrix.models import Environment
from tfdet.publish import variants
from tfdet.verdicts import remaining_sources
from tfdet.verdicts.infer import CellKey, Verdict
from tfdet.verdicts.status import Status
from tfdeterminism.version import __version__

_BY_HAND = [
    "import random",
    "import numpy",
    "random.seed(1)",
    "numpy.random.seed(1)",
]


def recipe_text(status: Status, key: str, installed: bool = False) -> str:
    """Python lines for a program in the environment `key`; what they do not cover follows as comments.

    installed: was tfdet installed as a package? Then the recipe installs tfdeterminism as a package, too.
    """
    environment = status.matrix.environment(key)
    if not status.matrix.frameworks[environment.framework].published:
        return "\n".join(_of_solutions(status, key))
    recipe = remaining_sources.recipe_of(environment)
    lines = [
        f"# {key}: {environment.image}",
        *(f"# {line}" for line in _install_lines(installed)),
        "import tfdeterminism",
        "",
        "print(tfdeterminism.enable_determinism(seed=1))  # before the first op; it says what it did",
        "",
        f"# By hand, without that package and its replaced ops ({recipe.solution or 'nothing but seeds helps'}):",
        *(f"#   {line}" for line in _by_hand(environment, recipe.lines())),
        *(f"# {caveat}" for caveat in recipe.caveats),
        "",
        *_avoid(status, key, environment),
    ]
    return "\n".join(lines)


def remaining_rows(status: Status, key: str) -> list[dict[str, Any]]:
    """The sources that remain nondeterministic in an environment, as JSON rows."""
    if not status.matrix.frameworks[status.matrix.environment(key).framework].published:
        return [
            {"source": source, "title": status.matrix.sources[source].title, "says": says, "measured": measured}
            for source, says, measured in _remaining(status, key)
        ]
    return [
        {"source": r.source, "title": status.matrix.sources[r.source].title, "says": r.says, "measured": r.measured}
        for r in remaining_sources.remaining(status, key)
    ]


def _of_solutions(status: Status, key: str) -> Iterator[str]:
    """Lines of the framework's own solutions, and comments on ops that remain nondeterministic."""
    environment = status.matrix.environment(key)
    framework = status.matrix.frameworks[environment.framework]
    yield f"# {key}: {framework.name} {environment.framework_version}"
    if framework.library:
        module = f"tfdeterminism.{framework.library}"
        yield f"# in one call, by the package tfdeterminism: import {module}; {module}.enable_determinism(seed=1)"
    told: set[str] = set()
    for solution in (status.matrix.solutions[name] for name in framework.recipe):
        yield from ("", f"# {solution.name.replace('`', '')}: {solution.condition or solution.description}".strip())
        yield from (line for line in solution.recipe if not line.startswith("import ") or line not in told)
        told.update(solution.recipe)
    left = list(_remaining(status, key))
    yield from ("", "# avoid, or expect differences or an error:" if left else "# no op is known as one to avoid")
    yield from (f"#   {status.matrix.sources[source].title}: {says}" for source, says, _ in left)


def _remaining(status: Status, key: str) -> Iterator[tuple[str, str, bool]]:
    """(source, what it does under the recipe's first solution, was that measured?)"""
    environment = status.matrix.environment(key)
    solution = status.matrix.frameworks[environment.framework].recipe[0]
    claim_device = status.matrix.devices.claim_device
    words = {Verdict.NONDETERMINISTIC: "differs", Verdict.RAISES: "raises an error"}
    for source in status.matrix.for_framework(environment.framework).sources:
        cells = [status.cell(CellKey(key, device, source, solution)) for device in (*status.measured_models, GPU)]
        seen = next((cell for cell in cells if cell.cell.verdict in words), None)
        # Documents speak of a kind of device, whatever card has measured other cells.
        refused = [
            kind for cell in cells if cell.claimed_outcome == "raises" and (kind := claim_device(cell.key.device))
        ]
        if seen:
            does = words[seen.cell.verdict] + variants.only_compiled(seen.cell)
            yield source, f"{does} (measured on {seen.key.device})", True
        elif refused:
            yield source, f"raises an error on a {refused[0].upper()} (documented, not measured)", False


def remaining_text(status: Status, framework: str) -> str:
    """Text of known.json in the framework's folder of tfdeterminism: what remains, by version, one entry per line."""
    environments = {
        e.version: key
        for key, e in status.matrix.for_framework(framework).environments.items()
        if e.line == "stock" and e.package is None
    }
    lists = {version: ",\n".join(map(json.dumps, _entries(status, key))) for version, key in environments.items()}
    told = (f'"{version}": [\n{text}\n]' for version, text in lists.items() if text)  # of others nothing is known yet
    return "{\n" + ",\n".join(told) + "\n}\n"


def _entries(status: Status, key: str) -> Iterator[dict[str, Any]]:
    for row in remaining_rows(status, key):
        yield {name: row[name] for name in ("title", "says", "measured")}


def _install_lines(installed: bool) -> list[str]:
    if installed:
        return [
            "start Python with PYTHONHASHSEED=0 in the environment; into it:",
            f"  pip install tfdeterminism=={__version__}",
        ]
    return [
        "start Python with PYTHONHASHSEED=0 in the environment; the package comes from a checkout of tfdet:",
        "  scripts/build-wheel",
        f"  pip install dist/tfdeterminism-{__version__}-py3-none-any.whl",
    ]


def _by_hand(environment: Environment, lines: list[str]) -> list[str]:
    old = environment.framework_version.startswith("1.")
    return [*lines, *_BY_HAND, "tf.compat.v1.set_random_seed(1)" if old else "tf.random.set_seed(1)"]


def _avoid(status: Status, key: str, environment: Environment) -> Iterator[str]:
    """Ops to avoid: documented or measured as nondeterministic, or covered only by the package's patches."""
    patches = remaining_sources.patched(environment)
    covered = {source for sources in patches.values() for source in sources}
    left = remaining_sources.remaining(status, key)
    open_ = [r for r in left if r.measured or r.source not in covered]
    yield "# avoid, or expect differences or an error:" if open_ else "# no op is known as one to avoid"
    for r in open_:
        source = status.matrix.sources[r.source]
        yield f"#   {source.title}: {r.says}" + (f"; instead: {source.workaround}" if source.workaround else "")
    only_patched = [r for r in left if r not in open_]
    if only_patched:
        yield "# covered by the package's replaced ops, not by hand:"
    for r in only_patched:
        yield f"#   {status.matrix.sources[r.source].title}: {r.says}"
