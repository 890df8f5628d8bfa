"""Exact lines to make one TensorFlow deterministic, and the ops to avoid there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfdet.matrix.models import Environment
from tfdet.verdicts import known
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

    installed: whether this tfdet came as a package, and so does the other.
    """
    environment = status.matrix.environment(key)
    recipe = known.recipe_of(environment)
    lines = [
        f"# {key}: {environment.image}",
        *(f"# {line}" for line in _getting_it(installed)),
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
    """What stays a source there, for machines."""
    return [
        {"source": r.source, "title": status.matrix.sources[r.source].title, "says": r.says, "measured": r.measured}
        for r in known.remaining(status, key)
    ]


def _getting_it(installed: bool) -> list[str]:
    if installed:
        return [
            "start Python with PYTHONHASHSEED=0 in the environment; into it:",
            f"  pip install tfdeterminism=={__version__}",
        ]
    return [
        "start Python with PYTHONHASHSEED=0 in the environment; the package comes from a checkout of tfdet:",
        "  scripts/wheel",
        f"  pip install dist/tfdeterminism-{__version__}-py3-none-any.whl",
    ]


def _by_hand(environment: Environment, lines: list[str]) -> list[str]:
    old = environment.framework_version.startswith("1.")
    return [*lines, *_BY_HAND, "tf.compat.v1.set_random_seed(1)" if old else "tf.random.set_seed(1)"]


def _avoid(status: Status, key: str, environment: Environment) -> Iterator[str]:
    """What stays a source there: by documents, and by measurement; and what only the package's patches cover."""
    patches = known.patched(environment)
    covered = {source for sources in patches.values() for source in sources}
    left = known.remaining(status, key)
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
