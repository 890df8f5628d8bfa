"""The rows of the generated tables: claims by version range with marks for their evidence, and measured verdicts.

A claim is what a cited document says of a source of nondeterminism under a solution, which makes it deterministic; the
solution NONE is none. An environment's line is who built it: `stock`, the framework's project, or `ngc`, NVIDIA.
"""

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
    """Return the columns of the GPU tables, as the frameworks' files define them."""
    return [column for framework in status.matrix.frameworks.values() for column in framework.columns]


def _covers(column: TableColumn, environment: Environment) -> bool:
    return ranges.contains(column.ngc if environment.line == "ngc" else column.stock, environment.version)


def claim_cell(status: Status, key: str, column: TableColumn) -> str:
    """Return the text of a table cell: the claims on one source in one column, with marks for their evidence."""
    source = status.matrix.sources[key]
    environments = [
        (name, environment)
        for name, environment in status.matrix.environments.items()
        if environment.is_for(source.package) and _covers(column, environment)
    ]
    claims = [(_claim_text(status, key, source, name, environment), environment) for name, environment in environments]
    texts = list(dict.fromkeys(text for text, _ in claims if text))
    if len({text for text, _ in claims}) == 1 or not texts:
        return "".join(texts)
    among, frameworks = [environment for _, environment in claims], status.matrix.frameworks
    chosen = {text: [environment for other, environment in claims if other == text] for text in texts}
    return "; ".join(f"{text} ({version_ranges(chosen[text], among, frameworks)})" for text in texts)


def _claim_text(status: Status, key: str, source: Source, environment_key: str, environment: Environment) -> str:
    """Return the claims in one environment, such as `TCD or TDO`, with the mark of their best evidence."""
    finding = status.finding(environment_key, key)
    if finding and finding.reach.how == "no GPU kernel":
        return "no GPU kernel<sup>a</sup>"
    outcomes = {
        solution: claim.outcome
        for solution in status.matrix.solutions
        for claim in claims_of(source, environment, GPU, solution)
    }
    backing = {
        solution: _backing(status, environment_key, key, solution, outcome) for solution, outcome in outcomes.items()
    }
    named = [  # NS1, "no solution is available", is shown among the solutions
        solution
        for solution, outcome in outcomes.items()
        if outcome in ("deterministic", "no-solution") and solution != NONE
    ]
    raising = [solution for solution, outcome in outcomes.items() if outcome == "raises"]
    has_no_solution = outcomes and "deterministic" not in outcomes.values()
    is_replaced = has_no_solution and key in remaining_sources.replaced_sources(environment)
    texts = [_with_marks(named, backing, " or ")] if named else []
    texts += [f"by default<sup>{backing[NONE]}</sup>"] if outcomes.get(NONE) == "deterministic" else []
    texts += [f"raises under {_with_marks(raising, backing, ' and ')}"] if raising else []
    texts += (
        [f"{remaining_sources.TFDETERMINISM_SOLUTION}<sup>{_replaced_backing(status, environment_key, key)}</sup>"]
        if is_replaced
        else []
    )
    return ", ".join(texts) if outcomes or finding is None else _unclaimed(status, environment_key, key, finding)


def _unclaimed(status: Status, environment: str, source: str, finding: AuditFinding) -> str:
    """Return the text on a source without a claim: measured, emulated, or found in the binaries."""
    if mark := _measured_mark(status, environment, source, NONE, _is(Verdict.NONDETERMINISTIC)):
        return f"order-dependent<sup>{mark}</sup>"
    if finding.has_unknown_reach:
        return "order-dependent<sup>s</sup>"
    if not status.cell(CellKey(environment, GPU, source, NONE)).audited:
        return ""
    return "order-dependent<sup>a</sup>" if finding.shows_order_dependence else "no such atomics<sup>a</sup>"


def _with_marks(solutions: list[str], backing: dict[str, str], between: str) -> str:
    marks = {backing[solution] for solution in solutions}
    if len(marks) == 1:
        return f"{between.join(solutions)}<sup>{marks.pop()}</sup>"
    return between.join(f"{solution}<sup>{backing[solution]}</sup>" for solution in solutions)


def _replaced_backing(status: Status, environment: str, source: str) -> str:
    """Return the mark of tfdeterminism's replacement of an op.

    m, e, ✗: as in _backing; p: only tests/runtime check the graph of the replacement, and no run of it is recorded.
    """
    if _measured_mark(
        status, environment, source, remaining_sources.TFDETERMINISM_SOLUTION, _is(Verdict.NONDETERMINISTIC)
    ):
        return "✗"
    return (
        _measured_mark(status, environment, source, remaining_sources.TFDETERMINISM_SOLUTION, _is_shown_deterministic)
        or "p"
    )


_CellPredicate = Callable[[InferredCell], bool]


def _is(verdict: Verdict) -> _CellPredicate:
    return lambda cell: cell.verdict is verdict


def _is_shown_deterministic(cell: InferredCell) -> bool:
    return cell.is_shown_deterministic


def _measured_mark(status: Status, environment: str, source: str, solution: str, matches: _CellPredicate) -> str:
    """Return the mark of the cells that match: m on a GPU, m×2 on GPUs of two machines, e on the virtual GPU only."""

    def matching_cells(models: list[str]) -> list[InferredCell]:
        cells = [status.verdict(CellKey(environment, model, source, solution)) for model in models]
        return [cell for cell in cells if matches(cell)]

    number = max((cell.machines for cell in matching_cells(status.gpus)), default=0)
    if number:
        return f"m×{number}" if number > 1 else "m"
    return "e" if matching_cells(status.emulated_models) else ""


# {claimed outcome: (the solution whose cell confirms it; None for that of the claim, a predicate of that cell)}
_CONFIRMING_CELLS = {
    "deterministic": (None, _is_shown_deterministic),
    "raises": (None, _is(Verdict.RAISES)),
    "no-solution": (NONE, _is(Verdict.NONDETERMINISTIC)),  # a control that differed confirms that none exists
}


def _backing(status: Status, environment: str, source: str, solution: str, outcome: str) -> str:
    """Return the mark for the evidence behind a claimed outcome.

    m: measured on a GPU (m×2: on GPUs of two machines); e: on the virtual GPU only; ✗: a run contradicts it; a: the
    audit of the binaries confirms it; s: the binaries contain such atomics, but it is unknown whether the op executes
    them; d: documents only.
    """
    models = [*status.gpus, *status.emulated_models]
    if any(status.cell(CellKey(environment, model, source, solution)).contradiction for model in models):
        return "✗"
    if outcome in _CONFIRMING_CELLS:
        other_solution, matches = _CONFIRMING_CELLS[outcome]
        if mark := _measured_mark(status, environment, source, other_solution or solution, matches):
            return mark
    cell = status.cell(CellKey(environment, GPU, source, solution))
    if cell.audited:
        return "a"
    return "s" if outcome == "no-solution" and cell.finding and cell.finding.has_unknown_reach else "d"


def version_ranges(chosen: list[Environment], among: list[Environment], frameworks: Mapping[str, Framework]) -> str:
    """Return environments as version ranges: TF 2.1, NGC 19.06 to 20.02, PyTorch 2.13.

    No range contains an environment of `among` that is not chosen.  If only some environments of a version are chosen,
    NGC's are listed for each major version of TensorFlow, and others by their exact version: TF 2.0.4.
    """
    chosen_ids = {id(environment) for environment in chosen}
    texts = []
    for line_key, framework, name in _labels(frameworks):
        same_line = [
            environment for environment in among if environment.line == line_key and environment.framework == framework
        ]
        line = [environment for environment in same_line if environment.package is None]
        lines = {name: line}
        for package in dict.fromkeys(environment.package for environment in same_line if environment.package):
            lines[f"{name} with {package}"] = [
                environment for environment in same_line if environment.package == package
            ]
        if line_key == "ngc" and any(is_chosen is None for is_chosen, _ in _by_version(line, chosen_ids)):
            majors = dict.fromkeys(_major(environment) for environment in line)
            stock = frameworks[framework].lines["stock"]
            lines = {
                f"{name} {stock}{major}": [environment for environment in line if _major(environment) == major]
                for major in majors
            }
        texts += [
            f"{label} {text}" for label, environments in lines.items() for text in _ranges(environments, chosen_ids)
        ]
    return ", ".join(texts)


def _labels(frameworks: Mapping[str, Framework]) -> Iterator[tuple[str, str, str]]:
    """Yield (line, framework, its label in tables); first those of the framework whose tables are in README.md."""
    for key, framework in sorted(frameworks.items(), key=lambda item: not item[1].published):
        yield from ((line, key, name) for line, name in framework.lines.items())


def _major(environment: Environment) -> str:
    return environment.framework_version.split(".")[0]


def _by_version(line: list[Environment], chosen_ids: set[int]) -> list[tuple[bool | None, list[Environment]]]:
    """Return (whether all are chosen, or None if only some are; the environments) of each version."""
    by_version: dict[str, list[Environment]] = {}
    for environment in line:
        by_version.setdefault(environment.version, []).append(environment)
    are_chosen = [
        {id(environment) in chosen_ids for environment in environments} for environments in by_version.values()
    ]
    return [
        (values.pop() if len(values) == 1 else None, environments)
        for values, environments in zip(are_chosen, by_version.values(), strict=True)
    ]


def _ranges(line: list[Environment], chosen_ids: set[int]) -> Iterator[str]:
    for is_chosen, group in groupby(_by_version(line, chosen_ids), key=lambda version: version[0]):
        versions = [environments for _, environments in group]
        if is_chosen:
            first, last = versions[0][0].version, versions[-1][0].version
            yield first if first == last else f"{first} to {last}"
        elif is_chosen is None:
            yield from (
                _exact_version(environment)
                for environments in versions
                for environment in environments
                if id(environment) in chosen_ids
            )


def _exact_version(environment: Environment) -> str:
    return environment.framework_version if environment.line == "stock" else environment.image.rsplit(":", 1)[-1]


def patch_version_ranges(matrix: Matrix, patch: Patch) -> str:
    """Return the builds to which tfdeterminism applies a patch: TF 1.13 to 2.6, NGC 19.06 to 20.02."""
    among = [environment for environment in matrix.environments.values() if environment.package is None]
    chosen = [environment for environment in among if patch.key in remaining_sources.applied_patches(environment)]
    return version_ranges(chosen, among, matrix.frameworks)


@dataclass(frozen=True)
class MeasuredTable:
    """The verdicts on one device: rows (source, solution, texts), with a text for each environment."""

    environments: list[str]
    rows: list[tuple[str, str, list[str]]]
    sources_without_difference: list[str]  # no environment showed a difference, an error or a failure
    rows_without_difference: list[tuple[str, str, list[str]]]  # the rows of these sources


def measured_table(status: Status, device: str, package: str | None = None) -> MeasuredTable:
    """Return the table of the cells that ran on a device, with separate rows for sources without any difference.

    package: the additional package that the environments have, such as Horovod; None: those with the framework alone.
    """
    among = {key for key, environment in status.matrix.environments.items() if environment.package == package}
    cells = [cell for cell in status.cells if cell.key.device == device and cell.inferred.verdict is not Verdict.BLANK]
    cells = [cell for cell in cells if cell.key.environment in among]
    chosen = [key for key in status.matrix.environments if key in {cell.key.environment for cell in cells}]
    without_difference = {Verdict.SCHEDULE_INDEPENDENT, Verdict.NOT_SHOWN, Verdict.UNSUPPORTED}
    by_source = {
        source: [cell for cell in cells if cell.key.source == source]
        for source in dict.fromkeys(cell.key.source for cell in cells)
    }
    equal_sources = [
        source
        for source, source_cells in by_source.items()
        if {cell.inferred.verdict for cell in source_cells} <= without_difference
    ]
    rows = {source: _rows(status, device, source, source_cells, chosen) for source, source_cells in by_source.items()}
    return MeasuredTable(
        chosen,
        rows=[row for source in by_source if source not in equal_sources for row in rows[source]],
        sources_without_difference=equal_sources,
        rows_without_difference=[row for source in equal_sources for row in rows[source]],
    )


def _rows(
    status: Status, device: str, source: str, cells: Iterable[StatusCell], chosen: list[str]
) -> list[tuple[str, str, list[str]]]:
    solutions = sorted(
        {cell.key.solution for cell in cells}, key=lambda solution: status.matrix.solutions[solution].order
    )
    return [
        (
            source,
            solution,
            [
                symbol_with_counts(status.verdict(CellKey(environment, device, source, solution)))
                for environment in chosen
            ],
        )
        for solution in solutions
    ]
