"""The recipe of an environment: the lines of code that make it deterministic, and the ops to avoid."""

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

_SEED_LINES = [
    "import random",
    "import numpy",
    "random.seed(1)",
    "numpy.random.seed(1)",
]


def recipe_text(status: Status, key: str, installed: bool = False) -> str:
    """Return lines of Python for a program in the environment `key`, followed by comments on what they do not cover.

    installed: whether tfdet was installed as a package; then the recipe installs tfdeterminism as a package, too.
    """
    environment = status.matrix.environment(key)
    if not status.matrix.frameworks[environment.framework].published:  # only TensorFlow is
        return "\n".join(_solution_lines(status, key))
    recipe = remaining_sources.recipe_of(environment)
    lines = [
        f"# {key}: {environment.image}",
        *(f"# {line}" for line in _install_lines(installed)),
        "import tfdeterminism",
        "",
        "print(tfdeterminism.enable_determinism(seed=1))  # before the first op; it says what it did",
        "",
        f"# By hand, without that package and its replaced ops ({recipe.solution or 'nothing but seeds helps'}):",
        *(f"#   {line}" for line in _lines_without_package(environment, recipe.lines())),
        *(f"# {caveat}" for caveat in recipe.caveats),
        "",
        *_ops_to_avoid(status, key, environment),
    ]
    return "\n".join(lines)


def remaining_rows(status: Status, key: str) -> list[dict[str, Any]]:
    """Return the sources that remain nondeterministic in an environment, as JSON rows."""
    if not status.matrix.frameworks[status.matrix.environment(key).framework].published:
        return [
            {"source": source, "title": status.matrix.sources[source].title, "says": says, "measured": measured}
            for source, says, measured in _remaining(status, key)
        ]
    return [
        {
            "source": entry.source,
            "title": status.matrix.sources[entry.source].title,
            "says": entry.says,
            "measured": entry.measured,
        }
        for entry in remaining_sources.remaining(status, key)
    ]


def _solution_lines(status: Status, key: str) -> Iterator[str]:
    """Yield the lines of the framework's own solutions, and comments on ops that remain nondeterministic."""
    environment = status.matrix.environment(key)
    framework = status.matrix.frameworks[environment.framework]
    yield f"# {key}: {framework.name} {environment.framework_version}"
    if framework.library:
        module = f"tfdeterminism.{framework.library}"
        yield f"# in one call, by the package tfdeterminism: import {module}; {module}.enable_determinism(seed=1)"
    printed: set[str] = set()
    for solution in (status.matrix.solutions[name] for name in framework.recipe):
        yield from ("", f"# {solution.name.replace('`', '')}: {solution.condition or solution.description}".strip())
        yield from (line for line in solution.recipe if not line.startswith("import ") or line not in printed)
        printed.update(solution.recipe)
    remaining = list(_remaining(status, key))
    yield from ("", "# avoid, or expect differences or an error:" if remaining else "# no op is known as one to avoid")
    yield from (f"#   {status.matrix.sources[source].title}: {says}" for source, says, _ in remaining)


def _remaining(status: Status, key: str) -> Iterator[tuple[str, str, bool]]:
    """Yield (source, its behavior under the recipe's first solution, whether that was measured)."""
    environment = status.matrix.environment(key)
    solution = status.matrix.frameworks[environment.framework].recipe[0]
    claim_device = status.matrix.devices.claim_device
    behaviors = {Verdict.NONDETERMINISTIC: "differs", Verdict.RAISES: "raises an error"}
    for source in status.matrix.for_framework(environment.framework).sources:
        cells = [status.cell(CellKey(key, device, source, solution)) for device in (*status.measured_models, GPU)]
        measured = next((cell for cell in cells if cell.inferred.verdict in behaviors), None)
        # Claims are about a kind of device, whichever models measured other cells.
        refusing_devices = [
            device_kind
            for cell in cells
            if cell.claimed_outcome == "raises" and (device_kind := claim_device(cell.key.device))
        ]
        if measured:
            behavior = behaviors[measured.inferred.verdict] + variants.only_compiled(measured.inferred)
            yield source, f"{behavior} (measured on {measured.key.device})", True
        elif refusing_devices:
            yield source, f"raises an error on a {refusing_devices[0].upper()} (documented, not measured)", False


def remaining_text(status: Status, framework: str) -> str:
    """Return the text of known.json in the framework's folder of tfdeterminism: the remaining sources by version.

    Only of `stock` builds, those of the framework's project, without an additional package such as Horovod.
    """
    environments = {
        environment.version: key
        for key, environment in status.matrix.for_framework(framework).environments.items()
        if environment.line == "stock" and environment.package is None
    }
    lists = {version: ",\n".join(map(json.dumps, _entries(status, key))) for version, key in environments.items()}
    parts = (f'"{version}": [\n{text}\n]' for version, text in lists.items() if text)  # only versions with entries
    return "{\n" + ",\n".join(parts) + "\n}\n"


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


def _lines_without_package(environment: Environment, lines: list[str]) -> list[str]:
    is_version_1 = environment.framework_version.startswith("1.")
    return [*lines, *_SEED_LINES, "tf.compat.v1.set_random_seed(1)" if is_version_1 else "tf.random.set_seed(1)"]


def _ops_to_avoid(status: Status, key: str, environment: Environment) -> Iterator[str]:
    """Yield comments on ops to avoid: documented or measured as nondeterministic, or covered only by patches."""
    patches = remaining_sources.applied_patches(environment)
    covered = {source for sources in patches.values() for source in sources}
    remaining = remaining_sources.remaining(status, key)
    uncovered = [entry for entry in remaining if entry.measured or entry.source not in covered]
    yield "# avoid, or expect differences or an error:" if uncovered else "# no op is known as one to avoid"
    for entry in uncovered:
        source = status.matrix.sources[entry.source]
        yield f"#   {source.title}: {entry.says}" + (f"; instead: {source.workaround}" if source.workaround else "")
    only_patched = [entry for entry in remaining if entry not in uncovered]
    if only_patched:
        yield "# covered by the package's replaced ops, not by hand:"
    for entry in only_patched:
        yield f"#   {status.matrix.sources[entry.source].title}: {entry.says}"
