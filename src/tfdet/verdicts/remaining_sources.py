"""The sources that stay nondeterministic under tfdeterminism in each version, from claims and evidence.

`tfdet status --write` writes them into the runtime package as known.json, which is never edited by hand.  A recipe is
what tfdeterminism.enable_determinism() sets in a version; a patch replaces an op by a deterministic one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tfdet.matrix.devices import GPU
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import NONE, Claim, Environment, Source
from tfdet.matrix.ranges import leading_version
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status import Status
from tfdeterminism import recipes

TFDETERMINISM_SOLUTION = "ED"  # the key of tfdeterminism.enable_determinism()


@dataclass(frozen=True)
class Remaining:
    """A source that stays nondeterministic, or raises an error.

    measured: whether a run under enable_determinism() with its patches showed it; otherwise documents claim it for this
    version or, if they say nothing, the virtual GPU showed it.
    """

    source: str
    says: str
    measured: bool


def build_of(environment: Environment) -> tuple[str, tuple[int, int]]:
    """Return the build as tfdeterminism detects it: line, and the framework's (major, minor).  ngc: built by NVIDIA.

    Images whose version is unknown are recent ones, so they get the newest version.
    """
    text = leading_version(environment.framework_version)
    if text is None:
        return environment.line, recipes.NEWEST_TENSORFLOW
    major, minor = text.split(".")[:2]
    return environment.line, (int(major), int(minor))


def newest(matrix: Matrix) -> tuple[int, int]:
    """Return the newest TensorFlow version, (major, minor), in the known.json of this matrix."""
    builds = [build_of(matrix.environments[key]) for keys in _builds(matrix).values() for key in keys]
    return max(version for line, version in builds if line == "stock")


def recipe_of(environment: Environment) -> recipes.Recipe:
    """Return the recipe for an environment."""
    return recipes.recipe_for(*build_of(environment))


def applied_patches(environment: Environment) -> dict[str, list[str]]:
    """Return {key of a patch that is applied in an environment: the sources that it serves}."""
    return {patch.key: list(patch.sources) for patch in recipes.patches_for(*build_of(environment))}


def replaced_sources(environment: Environment) -> set[str]:
    """Return the sources whose op tfdeterminism replaces in an environment."""
    return {source for sources in applied_patches(environment).values() for source in sources}


def expand_includes(matrix: Matrix, key: str | None) -> set[str]:
    """Return a solution and all solutions that it includes; an empty set for None."""
    if key is None:
        return set()
    return {key}.union(*(expand_includes(matrix, part) for part in matrix.solutions[key].includes))


def remaining(status: Status, key: str) -> list[Remaining]:
    """Return the sources that an environment's recipe does not cover without patches, in the matrix' order."""
    environment = status.matrix.environment(key)
    solution = recipe_of(environment).solution
    by_source = {entry.source: entry for entry in _documented(status, key, solution)}
    for source in status.matrix.sources:
        if source not in by_source and (device := _emulated(status, key, source)):
            by_source[source] = Remaining(source, f"differs (emulated on {device})", measured=False)
        for device, cell in _measured(status, key, source):
            if cell.verdict in (Verdict.NONDETERMINISTIC, Verdict.RAISES):
                behavior = "raises an error" if cell.verdict is Verdict.RAISES else "differs"
                help_text = _shown_to_help(status, key, source, device) or _documented_help(by_source.get(source))
                by_source[source] = Remaining(source, f"{behavior} (measured on {device}){help_text}", measured=True)
            elif cell.verdict is Verdict.DETERMINISTIC and device in status.gpus:
                by_source.pop(source, None)
    return [by_source[source] for source in status.matrix.sources if source in by_source]


def _measured(status: Status, key: str, source: str) -> Iterator[tuple[str, InferredCell]]:
    for device in status.measured_models:
        yield device, status.verdict(CellKey(key, device, source, TFDETERMINISM_SOLUTION))


def _emulated(status: Status, key: str, source: str) -> str | None:
    """Return the emulated GPU model on which a source differed in an environment, or None."""
    cells = {
        device: status.verdict(CellKey(key, device, source, TFDETERMINISM_SOLUTION))
        for device in status.emulated_models
    }
    return next((device for device, cell in cells.items() if cell.verdict is Verdict.NONDETERMINISTIC), None)


def _shown_to_help(status: Status, key: str, source: str, device: str) -> str:
    """Return "; needs SOLUTIONS" with the solutions that were measured to help; empty if there are none."""
    other_solutions = [name for name in status.matrix.solutions if name not in (NONE, TFDETERMINISM_SOLUTION)]
    cells = {name: status.verdict(CellKey(key, device, source, name)) for name in other_solutions}
    names = [name for name, cell in cells.items() if cell.verdict is Verdict.DETERMINISTIC]
    return f"; {_needs(status.matrix, names)}" if names else ""


def _documented_help(documented: Remaining | None) -> str:
    return f"; {documented.says}" if documented and documented.says.startswith(_NEEDS) else ""


_NEEDS = "needs "
_RAISES = "raises an error"


def _needs(matrix: Matrix, solutions: Iterable[str]) -> str:
    names = sorted({matrix.solutions[solution].name.replace("`", "") for solution in solutions})
    return f"{_NEEDS}{' or '.join(names)}"


def _documented(status: Status, key: str, solution: str | None) -> Iterator[Remaining]:
    matrix = status.matrix
    enabled = expand_includes(matrix, solution) | {"SEED"}  # enable_determinism() also sets the seeds
    environment = matrix.environment(key)
    stock = _stock_environment(matrix, key)
    for name, source in matrix.sources.items():
        if source.group == "beyond":  # the group of sources in other libraries than the framework
            continue
        claims, note = _claims(source, environment, stock)
        for device in source.devices:
            says = _uncovered_claim([claim for claim in claims if claim.device == device], enabled, matrix)
            if says and says != _RAISES and device == GPU and _audit_clears(status, key, name):
                continue
            if says:
                yield Remaining(name, says + note if device == GPU else f"{says} (on a CPU){note}", measured=False)
                break


def _audit_clears(status: Status, key: str, source: str) -> bool:
    """Return whether a build's audit shows that the op runs no order-dependent kernel on a GPU.

    Only the audit of the same build counts, also for NVIDIA's images.
    """
    finding, audit = status.finding(key, source), status.matrix.sources[source].audit
    if finding is None or audit is None:
        return False
    return finding.reach.how == "no GPU kernel" or (finding.reach.how == "not reached" and not audit.unauditable_reason)


def _stock_environment(matrix: Matrix, key: str) -> Environment:
    """Return the stock environment of the same TensorFlow version."""
    version = build_of(matrix.environment(key))[1]
    return next(other for other in matrix.environments.values() if build_of(other) == ("stock", version))


def _claims(source: Source, environment: Environment, stock: Environment) -> tuple[list[Claim], str]:
    """Return (the claims on a source in an environment, a note).

    If no document covers one of NVIDIA's images, the claims on the stock version are used, and the note says so.
    """
    own = [claim for claim in source.claims if claim.covers(environment)]
    if own or environment.line == "stock":
        return own, ""
    claims = [claim for claim in source.claims if claim.covers(stock)]
    return claims, f" (in stock {stock.version}; NVIDIA's is not documented)"


def _uncovered_claim(claims: list[Claim], enabled: set[str], matrix: Matrix) -> str | None:
    """Return how a source stays nondeterministic on a kind of device according to claims; None if it does not.

    enabled: the solutions of the recipe.
    """
    remedies = [solution for claim in claims if claim.outcome == "deterministic" for solution in claim.solutions]
    if any(claim.outcome == "raises" and enabled & set(claim.solutions) for claim in claims):
        return _RAISES
    if remedies and not {*enabled, NONE} & set(remedies):
        return _needs(matrix, remedies)
    if claims and not remedies and {claim.outcome for claim in claims} != {"raises"}:
        return "no solution is documented"
    return None


def to_content(status: Status) -> dict[str, Any]:
    """Return the content of known.json: lists of sources; the name of each build's list ("places"); the sources' texts.

    A build is named like "stock 2.0" or "ngc 20.03 tf1".

    Builds with equal lists share one, which has the name of the first of them, so that names stay when a list is added.
    """
    lists: dict[str, list[dict[str, Any]]] = {}
    list_of_build: dict[str, str] = {}
    for build, keys in _builds(status.matrix).items():
        by_source: dict[str, Remaining] = {}
        for key in keys:  # several patch levels of one minor version: a measurement of one of them holds for all
            by_source |= {
                entry.source: entry
                for entry in remaining(status, key)
                if entry.measured or entry.source not in by_source
            }
        entries = [asdict(by_source[source]) for source in status.matrix.sources if source in by_source]
        list_of_build[build] = next((first for first, other in lists.items() if other == entries), build)
        lists.setdefault(list_of_build[build], entries)
    listed = sorted({entry["source"] for entries in lists.values() for entry in entries})
    return {
        "lists": lists,
        "places": list_of_build,
        "sources": {key: _source_text(status.matrix.sources[key]) for key in listed},
    }


def _builds(matrix: Matrix) -> dict[str, list[str]]:
    keys_by_build: dict[str, list[str]] = {}
    for key, environment in matrix.environments.items():
        line, version = build_of(environment)
        build = f"{line} {environment.version}" + (f" tf{version[0]}" if line == "ngc" else "")
        keys_by_build.setdefault(build, []).append(key)
    return keys_by_build


def _source_text(source: Source) -> dict[str, str]:
    return {"title": source.title, "advice": source.workaround}


def to_json(status: Status) -> str:
    """Return the file's text, with one entry per line for readable diffs."""
    content = to_content(status)
    lists = {
        build: _block("[]", [json.dumps(entry) for entry in entries]) for build, entries in content["lists"].items()
    }
    parts = [f'"lists": {_block("{}", [f"{json.dumps(build)}: {block}" for build, block in lists.items()])}']
    for name in ("places", "sources"):
        items = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content[name].items()]
        parts.append(f'"{name}": {_block("{}", items)}')
    return _block("{}", parts) + "\n"


def _block(brackets: str, items: list[str]) -> str:
    return f"{brackets[0]}\n" + ",\n".join(items) + f"\n{brackets[1]}"
