"""The README's tables as rows of text: claims by version range, and what the CPU showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    "beyond": "Sources beyond TensorFlow",
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
    said = [(_claim_text(status, key, source, k, e), e) for k, e in environments]
    texts = list(dict.fromkeys(text for text, _ in said if text))
    if len({text for text, _ in said}) == 1 or not texts:
        return "".join(texts)
    among, names = [e for _, e in said], status.matrix.frameworks
    return "; ".join(f"{text} ({version_ranges([e for t, e in said if t == text], among, names)})" for text in texts)


def _claim_text(status: Status, key: str, source: Source, environment_key: str, environment: Environment) -> str:
    """e.g. `TCD or TDO`, each with the mark of its best backing (one mark where all have the same)."""
    finding = status.finding(environment_key, key)
    if finding and finding.reach.how == "no GPU kernel":
        return "no GPU kernel<sup>a</sup>"
    says = {
        solution: claim.says
        for solution in status.matrix.solutions
        for claim in claims_of(source, environment, GPU, solution)
    }
    backing = {solution: _backing(status, environment_key, key, solution, text) for solution, text in says.items()}
    works = [s for s, text in says.items() if text in ("deterministic", "no-solution") and s != NONE]
    refuses = [s for s, text in says.items() if text == "raises"]
    lacking = says and "deterministic" not in says.values()
    stands_in = lacking and key in remaining_sources.replaced(environment)
    words = [_with_marks(works, backing, " or ")] if works else []
    words += [f"by default<sup>{backing[NONE]}</sup>"] if says.get(NONE) == "deterministic" else []
    words += [f"raises under {_with_marks(refuses, backing, ' and ')}"] if refuses else []
    words += (
        [f"{remaining_sources.ENABLED}<sup>{_replaced_backing(status, environment_key, key)}</sup>"]
        if stands_in
        else []
    )
    return ", ".join(words) if says or finding is None else _unclaimed(status, environment_key, key, finding)


def _unclaimed(status: Status, environment: str, source: str, finding: AuditFinding) -> str:
    """Evidence on a source without a claim: measured, emulated, or found in the binaries."""
    if mark := _measured_mark(status, environment, source, NONE, Verdict.NONDETERMINISTIC):
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
    """m, e, ✗: as below; p: the graph of what tfdeterminism puts in the op's place speaks for it (tests/runtime)."""
    if _measured_mark(status, environment, source, remaining_sources.ENABLED, Verdict.NONDETERMINISTIC):
        return "✗"
    return _measured_mark(status, environment, source, remaining_sources.ENABLED, Verdict.DETERMINISTIC) or "p"


def _measured_mark(status: Status, environment: str, source: str, solution: str, verdict: Verdict) -> str:
    """m: measured on a GPU; m×2: on GPUs of two machines; e: on the virtual GPU only; else empty."""

    def showing(models: list[str]) -> list[InferredCell]:
        cells = [status.verdict(CellKey(environment, model, source, solution)) for model in models]
        return [cell for cell in cells if cell.verdict is verdict]

    number = max((cell.machines for cell in showing(status.gpus)), default=0)
    if number:
        return f"m×{number}" if number > 1 else "m"
    return "e" if showing(status.emulated_models) else ""


# A claim, and under which solution (None: the claimed one) which verdict backs it.
_BACKING_MARKS = {
    "deterministic": (None, Verdict.DETERMINISTIC),
    "raises": (None, Verdict.RAISES),
    "no-solution": (NONE, Verdict.NONDETERMINISTIC),  # what was tried in vain contradicts nothing
}


def _backing(status: Status, environment: str, source: str, solution: str, says: str) -> str:
    """The mark of what is claimed.

    m: a GPU showed it (m×2: on two machines); e: the virtual GPU did; ✗: one showed otherwise; a: the binaries speak
    for it; s: they hold such atomics, and whether the op reaches them is not known; d: documents only.
    """
    models = [*status.gpus, *status.emulated_models]
    if any(status.cell(CellKey(environment, model, source, solution)).contradiction for model in models):
        return "✗"
    if says in _BACKING_MARKS:
        tried, verdict = _BACKING_MARKS[says]
        if mark := _measured_mark(status, environment, source, tried or solution, verdict):
            return mark
    cell = status.cell(CellKey(environment, GPU, source, solution))
    if cell.audited:
        return "a"
    return "s" if says == "no-solution" and cell.finding and cell.finding.is_unchecked else "d"


def version_ranges(chosen: list[Environment], among: list[Environment], frameworks: Mapping[str, Framework]) -> str:
    """Which environments, as ranges: TF 2.1, NGC 19.06 to 20.02, PyTorch 2.13.

    No range holds an environment that was not chosen: where those of one version differ, NGC's are told apart by
    TensorFlow's major version, and what still differs by itself: TF 2.0.4.
    """
    taken = {id(environment) for environment in chosen}
    words = []
    for which, framework, name in _labels(frameworks):
        beside = [e for e in among if e.line == which and e.framework == framework]
        line = [e for e in beside if e.package is None]
        lines = {name: line}
        for package in dict.fromkeys(e.package for e in beside if e.package):
            lines[f"{name} with {package}"] = [e for e in beside if e.package == package]
        if which == "ngc" and any(whole is None for whole, _ in _by_version(line, taken)):
            majors = dict.fromkeys(_major(e) for e in line)
            stock = frameworks[framework].lines["stock"]
            lines = {f"{name} {stock}{major}": [e for e in line if _major(e) == major] for major in majors}
        words += [f"{label} {text}" for label, some in lines.items() for text in _ranges(some, taken)]
    return ", ".join(words)


def _labels(frameworks: Mapping[str, Framework]) -> Iterator[tuple[str, str, str]]:
    """(line, framework, how tables call it): those of the published framework first."""
    for key, framework in sorted(frameworks.items(), key=lambda item: not item[1].published):
        yield from ((line, key, name) for line, name in framework.lines.items())


def _major(environment: Environment) -> str:
    return environment.framework_version.split(".")[0]


def _by_version(line: list[Environment], taken: set[int]) -> list[tuple[bool | None, list[Environment]]]:
    """(were they all taken: None for some of them, the environments) of each version."""
    versions: dict[str, list[Environment]] = {}
    for environment in line:
        versions.setdefault(environment.version, []).append(environment)
    hits = [{id(e) in taken for e in same} for same in versions.values()]
    return [(hit.pop() if len(hit) == 1 else None, same) for hit, same in zip(hits, versions.values(), strict=True)]


def _ranges(line: list[Environment], taken: set[int]) -> Iterator[str]:
    for whole, run in groupby(_by_version(line, taken), key=lambda found: found[0]):
        versions = [same for _, same in run]
        if whole:
            first, last = versions[0][0].version, versions[-1][0].version
            yield first if first == last else f"{first} to {last}"
        elif whole is None:
            yield from (_exactly(e) for same in versions for e in same if id(e) in taken)


def _exactly(environment: Environment) -> str:
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
    """Rows of what `device` showed; sources without any difference are listed by name only.

    package: of the environments, see models.Environment.
    """
    among = {key for key, environment in status.matrix.environments.items() if environment.package == package}
    cells = [c for c in status.cells if c.key.device == device and c.cell.verdict is not Verdict.BLANK]
    cells = [c for c in cells if c.key.environment in among]
    chosen = [e for e in status.matrix.environments if e in {c.key.environment for c in cells}]
    quiet = {Verdict.NOT_SHOWN, Verdict.UNSUPPORTED}
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
