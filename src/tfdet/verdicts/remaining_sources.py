"""What stays nondeterministic in each version under tfdeterminism: from claims and evidence, for its report.

`tfdet status --write` puts it into the runtime package as known.json; nothing there is written by hand.
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

ENABLED = "ED"  # the key of tfdeterminism.enable_determinism()


@dataclass(frozen=True)
class Remaining:
    """measured: by a run under enable_determinism, patches and all; else documents say so of this version, or, where
    they say nothing, a GPU's emulation showed it.
    """

    source: str
    says: str
    measured: bool


def build_of(environment: Environment) -> tuple[str, tuple[int, int]]:
    """What tfdeterminism would see there: line, and the framework's (major, minor).

    Of some images nobody could cite that version: they are late ones, and have a late version.
    """
    text = leading_version(environment.framework_version)
    if text is None:
        return environment.line, recipes.NEWEST_TENSORFLOW
    major, minor = text.split(".")[:2]
    return environment.line, (int(major), int(minor))


def newest(matrix: Matrix) -> tuple[int, int]:
    """What tfdeterminism calls the newest TensorFlow that it knows, once known.json is made of this matrix."""
    builds = [build_of(matrix.environments[key]) for keys in _builds(matrix).values() for key in keys]
    return max(version for line, version in builds if line == "stock")


def recipe_of(environment: Environment) -> recipes.Recipe:
    """The row of the one table that holds there."""
    return recipes.recipe_for(*build_of(environment))


def patched(environment: Environment) -> dict[str, list[str]]:
    """{key of a patch that is applied there: the sources that it serves}."""
    return {patch.key: list(patch.sources) for patch in recipes.patches_for(*build_of(environment))}


def replaced(environment: Environment) -> set[str]:
    """The sources whose op tfdeterminism replaces there."""
    return {source for sources in patched(environment).values() for source in sources}


def expand_includes(matrix: Matrix, key: str | None) -> set[str]:
    """A solution and all that it includes."""
    if key is None:
        return set()
    return {key}.union(*(expand_includes(matrix, part) for part in matrix.solutions[key].includes))


def remaining(status: Status, key: str) -> list[Remaining]:
    """The sources that the recipe of this environment leaves, patches not counted, in the matrix' order."""
    environment = status.matrix.environment(key)
    solution = recipe_of(environment).solution
    found = {r.source: r for r in _documented(status, key, solution)}
    for source in status.matrix.sources:
        if source not in found and (device := _emulated(status, key, source)):
            found[source] = Remaining(source, f"differs (emulated on {device})", measured=False)
        for device, cell in _measured(status, key, source):
            if cell.verdict in (Verdict.NONDETERMINISTIC, Verdict.RAISES):
                does = "raises an error" if cell.verdict is Verdict.RAISES else "differs"
                helps = _shown_to_help(status, key, source, device) or _documented_help(found.get(source))
                found[source] = Remaining(source, f"{does} (measured on {device}){helps}", measured=True)
            elif cell.verdict is Verdict.DETERMINISTIC and device in status.gpus:
                found.pop(source, None)
    return [found[source] for source in status.matrix.sources if source in found]


def _measured(status: Status, key: str, source: str) -> Iterator[tuple[str, InferredCell]]:
    for device in status.measured_models:
        yield device, status.verdict(CellKey(key, device, source, ENABLED))


def _emulated(status: Status, key: str, source: str) -> str | None:
    """The model on which it was seen to differ there, of those that stand for a GPU."""
    cells = {device: status.verdict(CellKey(key, device, source, ENABLED)) for device in status.emulated_models}
    return next((device for device, cell in cells.items() if cell.verdict is Verdict.NONDETERMINISTIC), None)


def _shown_to_help(status: Status, key: str, source: str, device: str) -> str:
    """Semicolon, "needs" and the solutions that were seen to make it deterministic there; empty where none was."""
    others = [name for name in status.matrix.solutions if name not in (NONE, ENABLED)]
    cells = {name: status.verdict(CellKey(key, device, source, name)) for name in others}
    names = [name for name, cell in cells.items() if cell.verdict is Verdict.DETERMINISTIC]
    return f"; {_needs(status.matrix, names)}" if names else ""


def _documented_help(known: Remaining | None) -> str:
    return f"; {known.says}" if known and known.says.startswith(_NEEDS) else ""


_NEEDS = "needs "
_RAISES = "raises an error"


def _needs(matrix: Matrix, solutions: Iterable[str]) -> str:
    names = sorted({matrix.solutions[solution].name.replace("`", "") for solution in solutions})
    return f"{_NEEDS}{' or '.join(names)}"


def _documented(status: Status, key: str, solution: str | None) -> Iterator[Remaining]:
    matrix = status.matrix
    helps = expand_includes(matrix, solution) | {"SEED"}
    environment = matrix.environment(key)
    twin = _stock_twin(matrix, key)
    for name, source in matrix.sources.items():
        if source.group == "beyond":
            continue
        claims, note = _claims(source, environment, twin)
        for device in source.devices:
            says = _uncovered_claim([claim for claim in claims if claim.device == device], helps, matrix)
            if says and says != _RAISES and device == GPU and _audit_clears(status, key, name):
                continue
            if says:
                yield Remaining(name, says + note if device == GPU else f"{says} (on a CPU){note}", measured=False)
                break


def _audit_clears(status: Status, key: str, source: str) -> bool:
    """Does that build's audit show that the op runs no order-dependent kernel on a GPU, and hides nothing?

    No other build's audit speaks for an image of NVIDIA's.
    """
    finding, audit = status.finding(key, source), status.matrix.sources[source].audit
    if finding is None or audit is None:
        return False
    return finding.reach.how == "no GPU kernel" or (finding.reach.how == "not reached" and not audit.unauditable_reason)


def _stock_twin(matrix: Matrix, key: str) -> Environment:
    """The stock environment of the same TensorFlow version."""
    version = build_of(matrix.environment(key))[1]
    return next(e for e in matrix.environments.values() if build_of(e) == ("stock", version))


def _claims(source: Source, environment: Environment, twin: Environment) -> tuple[list[Claim], str]:
    """What documents say of a source there.

    Of most ops they say nothing about NVIDIA's images: then what they say of the stock version is the best guess.
    """
    own = [claim for claim in source.claims if claim.covers(environment)]
    if own or environment.line == "stock":
        return own, ""
    claims = [claim for claim in source.claims if claim.covers(twin)]
    return claims, f" (in stock {twin.version}; NVIDIA's is not documented)"


def _uncovered_claim(claims: list[Claim], helps: set[str], matrix: Matrix) -> str | None:
    """What documents leave open of one source on one kind of device, None where the solution covers it."""
    remedies = [s for c in claims if c.outcome == "deterministic" for s in c.solutions]
    if any(c.outcome == "raises" and helps & set(c.solutions) for c in claims):
        return _RAISES
    if remedies and not {*helps, NONE} & set(remedies):
        return _needs(matrix, remedies)
    if claims and not remedies and {c.outcome for c in claims} != {"raises"}:
        return "no solution is documented"
    return None


def to_content(status: Status) -> dict[str, Any]:
    """known.json: places ("stock 2.0", "ngc 20.03 tf1"), the lists of what remains, and the sources' words.

    Places share a list, which is named after the first of them: a number would change when another list comes.
    """
    lists: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, str] = {}
    for place, keys in _builds(status.matrix).items():
        found: dict[str, Remaining] = {}
        for key in keys:  # several patch levels of one minor: what one of them showed holds
            found |= {r.source: r for r in remaining(status, key) if r.measured or r.source not in found}
        entries = [asdict(found[source]) for source in status.matrix.sources if source in found]
        places[place] = next((first for first, same in lists.items() if same == entries), place)
        lists.setdefault(places[place], entries)
    named = sorted({entry["source"] for entries in lists.values() for entry in entries})
    return {"lists": lists, "places": places, "sources": {s: _source_text(status.matrix.sources[s]) for s in named}}


def _builds(matrix: Matrix) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, environment in matrix.environments.items():
        line, version = build_of(environment)
        place = f"{line} {environment.version}" + (f" tf{version[0]}" if line == "ngc" else "")
        found.setdefault(place, []).append(key)
    return found


def _source_text(source: Source) -> dict[str, str]:
    return {"title": source.title, "advice": source.workaround}


def to_json(status: Status) -> str:
    """The file's text: an entry a line, so that a change is seen in a diff."""
    found = to_content(status)
    lists = {place: _block("[]", [json.dumps(entry) for entry in entries]) for place, entries in found["lists"].items()}
    parts = [f'"lists": {_block("{}", [f"{json.dumps(place)}: {block}" for place, block in lists.items()])}']
    for name in ("places", "sources"):
        parts.append(f'"{name}": {_block("{}", [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found[name].items()])}')
    return _block("{}", parts) + "\n"


def _block(brackets: str, items: list[str]) -> str:
    return f"{brackets[0]}\n" + ",\n".join(items) + f"\n{brackets[1]}"
