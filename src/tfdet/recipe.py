"""Exact lines to make one TensorFlow deterministic, and the ops to avoid there."""

from __future__ import annotations

from collections.abc import Iterator

from tfdet.infer import Verdict
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import NONE, Claim, Environment, Solution, Source
from tfdet.status import Status

_SEEDS = [
    "import os, random",
    "import numpy as np",
    "import tensorflow as tf",
    "SEED = 1  # and start Python with PYTHONHASHSEED=0 in the environment",
    "random.seed(SEED)",
    "np.random.seed(SEED)",
]


def recipe_text(status: Status, key: str) -> str:
    """Python lines for a program in the environment `key`; what they do not cover follows as comments."""
    environment = status.matrix.environment(key)
    chosen = best_solution(status.matrix, environment)
    old = environment.tensorflow.startswith("1.")
    lines = [f"# {key}: {environment.image}", *_SEEDS]
    lines.append("tf.compat.v1.set_random_seed(SEED)" if old else "tf.random.set_seed(SEED)")
    if chosen is None:
        lines.append("# no solution for the ops of this version is known to work")
    else:
        solution = status.matrix.solutions[chosen]
        lines.append(f"# {chosen}: {solution.name}")
        lines += [line for line in solution.recipe if line not in lines and line != "import os"]
    return "\n".join([*lines, "", *_avoid(status, key, environment, chosen)])


def best_solution(matrix: Matrix, environment: Environment) -> str | None:
    """The solution that is claimed to work for the most sources there; the later one of equals."""
    counted = [
        (sum(_works(source, environment, _effects(matrix, key)) for source in matrix.sources.values()), s.order, key)
        for key, s in matrix.solutions.items()
        if _usable(s, environment) and any(_works(source, environment, {key}) for source in matrix.sources.values())
    ]
    works = [entry for entry in counted if entry[0]]
    return max(works)[2] if works else None


def _usable(solution: Solution, environment: Environment) -> bool:
    whole = solution.general or bool(solution.includes)  # not a remedy for one source
    return whole and bool(solution.recipe) and not solution.not_run and solution.available.covers(environment)


def _effects(matrix: Matrix, key: str) -> set[str]:
    """A solution and all that it includes."""
    return {key}.union(*(_effects(matrix, part) for part in matrix.solutions[key].includes))


def _gpu_claims(source: Source, environment: Environment) -> list[Claim]:
    return [claim for claim in source.claims if claim.device == "gpu" and claim.covers(environment)]


def _works(source: Source, environment: Environment, effects: set[str]) -> bool:
    return any(c.says == "deterministic" and effects & set(c.solutions) for c in _gpu_claims(source, environment))


def _avoid(status: Status, key: str, environment: Environment, chosen: str | None) -> list[str]:
    """What stays a source there under the chosen solution: by documents, and by measurement."""
    found = dict(_documented(status.matrix, environment, chosen))
    for cell in status.cells:
        if cell.key.environment == key and cell.key.solution == (chosen or NONE):
            where = f"measured on {cell.key.device}"
            if cell.cell.verdict is Verdict.NONDETERMINISTIC:
                found[cell.key.source] = f"nondeterministic under {cell.key.solution} ({where})"
            elif cell.cell.verdict is Verdict.RAISES:
                found[cell.key.source] = f"raises under {cell.key.solution} ({where})"
    lines = ["# avoid, or expect differences or an error:"] if found else ["# no op is known as one to avoid"]
    for source_key, why in found.items():
        source = status.matrix.sources[source_key]
        remedy = f"; instead: {source.workaround}" if source.workaround else ""
        lines.append(f"#   {source.title}: {why}{remedy}")
    return lines


def _documented(matrix: Matrix, environment: Environment, chosen: str | None) -> Iterator[tuple[str, str]]:
    effects = (_effects(matrix, chosen) if chosen else set()) | {"SEED"}
    for key, source in matrix.sources.items():
        if source.group == "beyond":
            continue
        claims = _gpu_claims(source, environment)
        remedies = sorted({s for c in claims if c.says == "deterministic" for s in c.solutions})
        if any(c.says == "raises" and effects & set(c.solutions) for c in claims):
            yield key, f"raises under {chosen}"
        elif remedies and not {*effects, NONE} & set(remedies):
            yield key, f"needs {' or '.join(remedies)}"
        elif claims and not remedies:
            yield key, "no solution is documented"
