"""The README's tables as rows of text: claims by version range, and what the CPU showed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tfdet.matrix import ranges
from tfdet.matrix.devices import GPU
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import NONE, Environment, Framework, Source, SourceGroup, TableColumn
from tfdet.matrix.plan import claims_of
from tfdet.publish.verdict_symbols import symbol_with_counts
from tfdet.verdicts import remaining_sources
from tfdet.verdicts.audit_findings import AuditFinding
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status import Status, StatusCell
from tfdeterminism.patches import Patch

GROUPS: dict[SourceGroup, str] = {
    "gpu-confirmed": "Confirmed sources (with solutions)",
    "gpu-historic": "Historic sources",
    "gpu-possible": "Possible sources: files that call CUDA `atomicAdd`",
    "gpu-later": "Sources that later documents name",
    "gpu-candidate": "Candidates: found in the binaries, named by no document",
    "not-gpu": "Sources that have nothing to do with a GPU",
    "beyond": "Sources in other libraries",
    "op": "Ops that the framework ships sample inputs for",
}


def columns(status: Status) -> list[TableColumn]:
    """Columns of the GPU tables; the framework's file says which builds share one."""
    return [column for framework in status.matrix.frameworks.values() for column in framework.columns]


def _covers(column: TableColumn, environment: Environment) -> bool:
    return ranges.contains(column.ngc if environment.line == "ngc" else column.stock, environment.version)


def claim_cell(status: Status, key: str, column: TableColumn) -> str:
    """The claims on one source in one column, with marks for the evidence behind them."""
    source = status.matrix.sources[key]
    ours = [(k, e) for k, e in status.matrix.environments.items() if e.is_for(source.package)]
    environments = [(k, e) for k, e in ours if _covers(column, e)]
    claims = [(_claim_text(status, key, source, k, e), e) for k, e in environments]
    texts = list(dict.fromkeys(text for text, _ in claims if text))
    if len({text for text, _ in claims}) == 1 or not texts:
        return "".join(texts)
    among, names = [e for _, e in claims], status.matrix.frameworks
    return "; ".join(f"{text} ({version_ranges([e for t, e in claims if t == text], among, names)})" for text in texts)


def _claim_text(status: Status, key: str, source: Source, environment_key: str, environment: Environment) -> str:
    """e.g. `TCD or TDO`, each with the mark of its best backing (one mark where all have the same)."""
    finding = status.finding(environment_key, key)
    if finding and finding.reach.how == "no GPU kernel":
        return "no GPU kernel<sup>a</sup>"
    outcomes = {
        solution: claim.outcome
        for solution in status.matrix.solutions
        for claim in claims_of(source, environment, GPU, solution)
    }
    backing = {solution: _backing(status, environment_key, key, solution, text) for solution, text in outcomes.items()}
    works = [s for s, text in outcomes.items() if text in ("deterministic", "no-solution") and s != NONE]
    refuses = [s for s, text in outcomes.items() if text == "raises"]
    has_no_solution = outcomes and "deterministic" not in outcomes.values()
    is_replaced = has_no_solution and key in remaining_sources.replaced(environment)
    words = [_with_marks(works, backing, " or ")] if works else []
    words += [f"by default<sup>{backing[NONE]}</sup>"] if outcomes.get(NONE) == "deterministic" else []
    words += [f"raises under {_with_marks(refuses, backing, ' and ')}"] if refuses else []
    words += (
        [f"{remaining_sources.ENABLED}<sup>{_replaced_backing(status, environment_key, key)}</sup>"]
        if is_replaced
        else []
    )
    return ", ".join(words) if outcomes or finding is None else _unclaimed(status, environment_key, key, finding)


def _unclaimed(status: Status, environment: str, source: str, finding: AuditFinding) -> str:
    """Evidence on a source without a claim: measured, emulated, or found in the binaries."""
    if mark := _measured_mark(status, environment, source, NONE, _is(Verdict.NONDETERMINISTIC)):
        return f"order-dependent<sup>{mark}</sup>"
    if finding.is_unchecked:
        return "order-dependent<sup>s</sup>"
    if not status.cell(CellKey(environment, GPU, source, NONE)).audited:
        return ""
    return "order-dependent<sup>a</sup>" if finding.is_conclusive else "no such atomics<sup>a</sup>"


def _with_marks(solutions: list[str], backing: dict[str, str], between: str) -> str:
    marks = {backing[solution] for solution in solutions}
    if len(marks) == 1:
        return f"{between.join(solutions)}<sup>{marks.pop()}</sup>"
    return between.join(f"{solution}<sup>{backing[solution]}</sup>" for solution in solutions)


def _replaced_backing(status: Status, environment: str, source: str) -> str:
    """The mark of tfdeterminism's replacement of an op.

    m, e, ✗: as in _backing; p: tests/runtime check the graph of the replacement, no run of it was recorded.
    """
    if _measured_mark(status, environment, source, remaining_sources.ENABLED, _is(Verdict.NONDETERMINISTIC)):
        return "✗"
    return _measured_mark(status, environment, source, remaining_sources.ENABLED, _is_shown_deterministic) or "p"


_Shows = Callable[[InferredCell], bool]


def _is(verdict: Verdict) -> _Shows:
    return lambda cell: cell.verdict is verdict


def _is_shown_deterministic(cell: InferredCell) -> bool:
    return cell.is_shown_deterministic


def _measured_mark(status: Status, environment: str, source: str, solution: str, shows: _Shows) -> str:
    """m: measured on a GPU; m×2: on GPUs of two machines; e: on the virtual GPU only; else empty."""

    def showing(models: list[str]) -> list[InferredCell]:
        cells = [status.verdict(CellKey(environment, model, source, solution)) for model in models]
        return [cell for cell in cells if shows(cell)]

    number = max((cell.machines for cell in showing(status.gpus)), default=0)
    if number:
        return f"m×{number}" if number > 1 else "m"
    return "e" if showing(status.emulated_models) else ""


# A claimed outcome: the solution (None: that of the claim) and what under it confirms the claim.
_BACKING_MARKS = {
    "deterministic": (None, _is_shown_deterministic),
    "raises": (None, _is(Verdict.RAISES)),
    "no-solution": (NONE, _is(Verdict.NONDETERMINISTIC)),  # a solution that fails contradicts no claim
}


def _backing(status: Status, environment: str, source: str, solution: str, outcome: str) -> str:
    """The mark for the evidence behind a claimed outcome.

    m: measured on a GPU (m×2: on GPUs of two machines); e: on the virtual GPU only; ✗: a run contradicts it; a: the
    audit of the binaries confirms it; s: the binaries contain such atomics, but it is unknown whether the op executes
    them; d: documents only.
    """
    models = [*status.gpus, *status.emulated_models]
    if any(status.cell(CellKey(environment, model, source, solution)).contradiction for model in models):
        return "✗"
    if outcome in _BACKING_MARKS:
        other_solution, shows = _BACKING_MARKS[outcome]
        if mark := _measured_mark(status, environment, source, other_solution or solution, shows):
            return mark
    cell = status.cell(CellKey(environment, GPU, source, solution))
    if cell.audited:
        return "a"
    return "s" if outcome == "no-solution" and cell.finding and cell.finding.is_unchecked else "d"


def version_ranges(chosen: list[Environment], among: list[Environment], frameworks: Mapping[str, Framework]) -> str:
    """Which environments, as ranges: TF 2.1, NGC 19.06 to 20.02, PyTorch 2.13.

    No range contains an environment that was not chosen.  If only some environments of a version were chosen, NGC's are
    listed for each major version of TensorFlow, and others by their exact version: TF 2.0.4.
    """
    chosen_ids = {id(environment) for environment in chosen}
    words = []
    for which, framework, name in _labels(frameworks):
        beside = [e for e in among if e.line == which and e.framework == framework]
        line = [e for e in beside if e.package is None]
        lines = {name: line}
        for package in dict.fromkeys(e.package for e in beside if e.package):
            lines[f"{name} with {package}"] = [e for e in beside if e.package == package]
        if which == "ngc" and any(whole is None for whole, _ in _by_version(line, chosen_ids)):
            majors = dict.fromkeys(_major(e) for e in line)
            stock = frameworks[framework].lines["stock"]
            lines = {f"{name} {stock}{major}": [e for e in line if _major(e) == major] for major in majors}
        words += [f"{label} {text}" for label, some in lines.items() for text in _ranges(some, chosen_ids)]
    return ", ".join(words)


def _labels(frameworks: Mapping[str, Framework]) -> Iterator[tuple[str, str, str]]:
    """(line, framework, how tables call it): those of the published framework first."""
    for key, framework in sorted(frameworks.items(), key=lambda item: not item[1].published):
        yield from ((line, key, name) for line, name in framework.lines.items())


def _major(environment: Environment) -> str:
    return environment.framework_version.split(".")[0]


def _by_version(line: list[Environment], chosen_ids: set[int]) -> list[tuple[bool | None, list[Environment]]]:
    """(were all of them chosen: None for some of them, the environments) of each version."""
    versions: dict[str, list[Environment]] = {}
    for environment in line:
        versions.setdefault(environment.version, []).append(environment)
    hits = [{id(e) in chosen_ids for e in same} for same in versions.values()]
    return [(hit.pop() if len(hit) == 1 else None, same) for hit, same in zip(hits, versions.values(), strict=True)]


def _ranges(line: list[Environment], chosen_ids: set[int]) -> Iterator[str]:
    for whole, run in groupby(_by_version(line, chosen_ids), key=lambda found: found[0]):
        versions = [same for _, same in run]
        if whole:
            first, last = versions[0][0].version, versions[-1][0].version
            yield first if first == last else f"{first} to {last}"
        elif whole is None:
            yield from (_exact_version(e) for same in versions for e in same if id(e) in chosen_ids)


def _exact_version(environment: Environment) -> str:
    return environment.framework_version if environment.line == "stock" else environment.image.rsplit(":", 1)[-1]


def patch_version_ranges(matrix: Matrix, patch: Patch) -> str:
    """Where a patch of tfdeterminism is applied: TF 1.13 to 2.6, NGC 19.06 to 20.02."""
    among = [(key, e) for key, e in matrix.environments.items() if e.package is None]
    chosen = [e for key, e in among if patch.key in remaining_sources.patched(e)]
    return version_ranges(chosen, [e for _, e in among], matrix.frameworks)


@dataclass(frozen=True)
class MeasuredTable:
    """A table of one device: rows (source, solution), a column an environment."""

    environments: list[str]
    rows: list[tuple[str, str, list[str]]]
    sources_without_difference: list[str]  # no environment showed a difference, a refusal or a failure
    rows_without_difference: list[tuple[str, str, list[str]]]  # the rows of these sources


def measured_table(status: Status, device: str, package: str | None = None) -> MeasuredTable:
    """The verdicts of the cells that ran on a device; sources without any difference are separate.

    package: of the environments, see models.Environment.
    """
    among = {key for key, environment in status.matrix.environments.items() if environment.package == package}
    cells = [c for c in status.cells if c.key.device == device and c.cell.verdict is not Verdict.BLANK]
    cells = [c for c in cells if c.key.environment in among]
    chosen = [e for e in status.matrix.environments if e in {c.key.environment for c in cells}]
    quiet = {Verdict.SCHEDULE_INDEPENDENT, Verdict.NOT_SHOWN, Verdict.UNSUPPORTED}
    by_source = {s: [c for c in cells if c.key.source == s] for s in dict.fromkeys(c.key.source for c in cells)}
    silent = [s for s, some in by_source.items() if {c.cell.verdict for c in some} <= quiet]
    rows = {s: _rows(status, device, s, some, chosen) for s, some in by_source.items()}
    return MeasuredTable(
        chosen,
        rows=[row for s in by_source if s not in silent for row in rows[s]],
        sources_without_difference=silent,
        rows_without_difference=[row for s in silent for row in rows[s]],
    )


def _rows(
    status: Status, device: str, source: str, cells: Iterable[StatusCell], chosen: list[str]
) -> list[tuple[str, str, list[str]]]:
    solutions = sorted({c.key.solution for c in cells}, key=lambda s: status.matrix.solutions[s].order)
    return [
        (source, solution, [symbol_with_counts(status.verdict(CellKey(e, device, source, solution))) for e in chosen])
        for solution in solutions
    ]
