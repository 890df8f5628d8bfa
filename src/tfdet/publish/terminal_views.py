"""Tables and texts about evidence that the commands print on a terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from tfdet.matrix.devices import GPU
from tfdet.matrix.models import NONE, Environment
from tfdet.matrix.plan import plan_cells
from tfdet.publish import overview, proof_views, variants
from tfdet.publish.tables import version_ranges
from tfdet.publish.terminal_lists import FactTable
from tfdet.publish.verdict_symbols import SYMBOLS
from tfdet.store import audits
from tfdet.store.costs import Cost
from tfdet.store.records import Record
from tfdet.verdicts.audit_findings import KernelRow
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.reproduction import ReproducedCell
from tfdet.verdicts.selection import Selection
from tfdet.verdicts.status import Status, StatusCell
from tfdet.verdicts.status_loading import CellChange
from tfdet_common.defaults import MAX_TABLE_ROWS
from tfdeterminism.trace.report import value_text

# What no audit can see.
AUDIT_BLIND_SPOTS = (
    "cuDNN and cuBLAS (not in the wheel), code that XLA generates at run time, races of plain stores, which kernel the "
    "host picks; what is shipped need not be reached"
)
_MAX_NAME_LENGTH = 200  # characters of a kernel's name; Eigen's have thousands

if TYPE_CHECKING:
    from tfdet.engines.locate import LocateResult

_STYLE = {
    Verdict.NONDETERMINISTIC: "red",
    Verdict.SCHEDULE_INDEPENDENT: "bold green",
    Verdict.DETERMINISTIC: "green",
    Verdict.TOO_FEW: "yellow",
    Verdict.NOT_SHOWN: "dim",
    Verdict.RAISES: "yellow",
    Verdict.FAILED: "magenta",
    Verdict.STALE: "dim italic",
    Verdict.UNSUPPORTED: "dim",
}


def verdict_text(cell: InferredCell) -> Text:
    """Return a verdict with its numbers: nondeterministic 40/40, not shown to differ 0/40 (≤ 7.2%)."""
    text = str(cell.verdict)
    if cell.verdict is Verdict.NONDETERMINISTIC:
        text += f" {cell.differed}/{cell.runs}"
    elif cell.bound95 is not None:
        text += f" 0/{cell.runs} (≤ {cell.bound95:.1%})"
    if cell.verdict in (Verdict.DETERMINISTIC, Verdict.TOO_FEW):
        text += f", {cell.controls_differed} of {cell.cases} cases' control differed"
    text += proof_views.proof_note(cell) + variants.variants_note(cell)
    return Text(text, style=_STYLE.get(cell.verdict, ""))


def cell_table(cells: Iterable[StatusCell]) -> FactTable:
    table = FactTable("source", "solution", "device", "verdict", "time", "backing", "claim")
    for cell in cells:
        time_ratio = f"× {cell.inferred.time_ratio:.2f}" if cell.inferred.time_ratio else ""
        table.add(cell.key.source, cell.key.solution, cell.key.device, verdict_text(cell.inferred), time_ratio,
                  cell.backing_text, cell.claimed_outcome or "")  # fmt: skip
    return table


def run_result(cells: Sequence[StatusCell], whole: bool | None) -> RenderableType:
    """Return a row for each cell of a run, or its headline. whole: None stands for "if they fit on a screen"."""
    if whole is None:
        whole = len(cells) <= MAX_TABLE_ROWS
    return cell_table(cells) if whole else run_headline(cells)


def run_headline(cells: Sequence[StatusCell]) -> RenderableType:
    """Return a row for each source that differs or fails, with the solutions that make it deterministic."""
    by_source: dict[str, dict[Verdict, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        by_source[cell.key.source][cell.inferred.verdict].append(cell.key.solution)
    listed = {source: solutions for source, solutions in by_source.items() if solutions.keys() & set(_HEADLINE)}
    headers = {
        verdict: header
        for verdict, header in _HEADLINE.items()
        if any(verdict in by_verdict for by_verdict in listed.values())
    }
    table = FactTable("source", *headers.values())
    for source, solutions in listed.items():
        table.add(source, *(Text(", ".join(solutions[verdict]), style=_STYLE[verdict]) for verdict in headers))
    unlisted = len(by_source) - len(listed)
    rest_text = f"{unlisted} more sources in which nothing differed; " if unlisted else ""
    rest_text += f"--table prints all {len(cells)} cells"
    return Group(table, Text(rest_text, style="dim")) if listed else Text(rest_text, style="dim")


_HEADLINE = {
    Verdict.NONDETERMINISTIC: "differs under",
    Verdict.SCHEDULE_INDEPENDENT: "proved under",
    Verdict.DETERMINISTIC: "deterministic under",
    Verdict.TOO_FEW: "too few runs under",
    Verdict.FAILED: "failed under",
}


def change_table(changes: Iterable[CellChange]) -> FactTable:
    """Return a table of the cells that records would change."""
    table = FactTable("environment", "device", "source", "solution", "now", "then", "backing")
    for change in changes:
        key, before = change.after.key, verdict_text(change.before.inferred)
        table.add(key.environment, key.device, key.source, key.solution, before if before.plain else "never run",
                  verdict_text(change.after.inferred), change.after.backing_text)  # fmt: skip
    return table


def reproduction_table(results: Iterable[ReproducedCell]) -> FactTable:
    """Return a table of the recorded and the reproduced verdicts."""
    table = FactTable("environment", "device", "source", "solution", "recorded", "reproduced", "")
    for result in results:
        key = result.key
        table.add(key.environment, key.device, key.source, key.solution, verdict_text(result.recorded),
                  verdict_text(result.reproduced), result.answer)  # fmt: skip
    return table


MARKS_LEGEND = (
    "✗ nondeterministic  ✓ deterministic (its control differed)  ? too few runs\n"
    "∎ schedule-independent (proved)  ≈ not shown to differ  – unsupported"
)
AUDITED_LEGEND = (
    "a audited: read from the binaries, not run (docs/how-to/audit-a-build.md)  "
    "s shipped: whether the op reaches these kernels is not established"
)


def status(found: Status, selection: Selection, width: int) -> RenderableType:
    """Return the selected cells that ran, with a column for each environment if they fit into `width` characters.

    Otherwise each row lists the environments with each verdict.
    """
    ran = overview.in_reading_order(found, [cell for cell in selection.cells(found) if cell.was_run])
    legend = Text(MARKS_LEGEND + "\n", style="dim")
    keys = {cell.key.environment for cell in ran}
    widths = [max((len(cell.key.source) for cell in ran), default=0)]
    widths += [max((len(cell.key.solution) for cell in ran), default=0)]
    widths += [max(map(len, column)) for column in {(cell.key.environment, cell.key.device) for cell in ran}]
    if not ran:
        parts: list[RenderableType] = [Text("no cell that ran is among these")]
    elif sum(widths) + 2 * len(widths) <= width:
        parts = [legend, _by_environment(found, ran)]
    else:
        among = " ".join(key for key in found.matrix.environments if key in keys)
        ranges = Text(f"Ranges cover measured environments only: {among}\n", style="dim")
        parts = [legend, ranges, _by_mark(found, ran)]
    if audited := _audited(found, selection):
        parts += [
            Text("\non GPUs, without any solution", style="bold"),
            Text(AUDITED_LEGEND + "\n", style="dim"),
            audited,
        ]
    return Group(*parts)


def _by_environment(status: Status, cells: Sequence[StatusCell]) -> FactTable:
    columns = list(dict.fromkeys((cell.key.environment, cell.key.device) for cell in cells))
    columns.sort(key=lambda column: (column[1], list(status.matrix.environments).index(column[0])))
    table = FactTable("source", "solution", *(f"{environment}\n{device}" for environment, device in columns))
    by_place = {(cell.key.source, cell.key.solution, cell.key.environment, cell.key.device): cell for cell in cells}
    for source, solution in dict.fromkeys((cell.key.source, cell.key.solution) for cell in cells):
        row = [by_place.get((source, solution, *column)) for column in columns]
        table.add(source, solution, *(_mark(cell.inferred.verdict) if cell else "" for cell in row))
    return table


def _by_mark(status: Status, cells: Sequence[StatusCell]) -> FactTable:
    """Return a table of the environments with each verdict, by source and solution: ✗ TF 1.14 to 2.8; ✓ TF 2.9."""
    environments = status.matrix.environments
    ran = {
        device: {cell.key.environment for cell in cells if cell.key.device == device}
        for device in (*status.measured_models, *status.emulated_models)
    }
    among = {
        device: [environment for key, environment in environments.items() if key in keys]
        for device, keys in ran.items()
    }
    rows: dict[tuple[str, str, str], list[StatusCell]] = {}
    for cell in cells:
        rows.setdefault((cell.key.source, cell.key.solution, cell.key.device), []).append(cell)
    table = FactTable("source and solution", "device", "what which environments showed")
    previous_source = ""
    for (source, solution, device), row_cells in rows.items():
        if source != previous_source:
            table.add_heading(source)
            previous_source = source
        text = Text()
        for verdict in dict.fromkeys(cell.inferred.verdict for cell in row_cells):
            showing_environments = [
                environments[cell.key.environment] for cell in row_cells if cell.inferred.verdict is verdict
            ]
            where = version_ranges(showing_environments, among[device], status.matrix.frameworks)
            text += (
                Text("; " if text else "") + Text(SYMBOLS[verdict], style=_STYLE.get(verdict, "")) + Text(f" {where}")
            )
        table.add(f"  {solution}", device, text)
    return table


def _audited(status: Status, selection: Selection) -> FactTable | None:
    """Return a table of audit findings, with the builds of each; None if there are none or only runs are selected."""
    if selection.devices or selection.verdicts:
        return None
    environments = status.matrix.environments
    among = [environments[key] for key in environments if key in status.audits]
    selected = [key for key in selection.builds(status) if key in status.audits]
    builds_by_row: dict[tuple[str, str, str], list[Environment]] = {}
    for source in sorted(status.matrix.sources, key=lambda name: status.matrix.sources[name].sort_key):
        if selection.sources and source not in selection.sources:
            continue
        for key in selected:
            cell = status.cell(CellKey(key, GPU, source, NONE))
            if cell.finding and (cell.audited or cell.finding.has_unknown_reach):
                row = source, "a" if cell.audited else "s", cell.finding.text
                builds_by_row.setdefault(row, []).append(environments[key])
    table = FactTable("source", "", "the binaries hold", "builds")
    for (source, mark, text), builds in builds_by_row.items():
        table.add(source, mark, text, version_ranges(builds, among, status.matrix.frameworks))
    return table if builds_by_row else None


def _mark(verdict: Verdict) -> Text:
    return Text(SYMBOLS[verdict], style=_STYLE.get(verdict, ""))


def show(
    status: Status,
    env: str,
    source: str,
    records: Sequence[Record],
    costs: Sequence[Cost],
    signer_of: Callable[[Record], str] = lambda record: "",
) -> list[RenderableType]:
    """Return everything known about one source in one environment.

    signer_of: returns the signer of a record, `unsigned` if it has none.
    """
    entry = status.matrix.source(source)
    parts: list[RenderableType] = [Text(f"{entry.title}  ({env})", style="bold")]
    parts.append(cell_table(cell for cell in status.cells if cell.key.environment == env and cell.key.source == source))
    parts.append(Text("\nclaims", style="bold"))
    environment = status.matrix.environment(env)
    for claim in entry.claims:
        if claim.covers(environment):
            solutions = " or ".join(claim.solutions)
            parts.append(Text(f"  {claim.device}: {claim.outcome} by {solutions}  [{claim.cite[0]}]"))
    parts += [Text(line, style="bold" * (not number)) for number, line in enumerate(proof_views.explain(records))]
    parts += _audit(status, env, source)
    parts.append(Text("\nrecords", style="bold"))
    parts.append(_records(records, signer_of))
    parts += _uncounted_devices(status, records, signer_of)
    if costs:
        parts += [Text("\nwhat replacing the op costs", style="bold"), _costs(costs)]
    parts.append(Text("\nnot run, and why", style="bold"))
    for cell in plan_cells(status.matrix, env):
        # The virtual GPU, for which claims about GPUs hold too, would repeat the GPU's reasons.
        if cell.source == source and cell.reason and cell.device == cell.claim_device:
            parts.append(Text(f"  {cell.device} {cell.solution}: {cell.reason}"))
    parts.append(Text("\nrun it again", style="bold"))
    devices = sorted({status.matrix.devices.kinds[record.device.kind].cli_name for record in records} or {GPU})
    parts += [Text(f"  tfdet run {env} --device {device} --source {source}") for device in devices]
    provers = sorted({status.matrix.devices.kinds[record.device.kind].cli_name for record in records if record.proof})
    parts += [Text(f"  tfdet run {env} --device {device} --source {source} --prove") for device in provers]
    return parts


def _audit(status: Status, env: str, source: str) -> list[RenderableType]:
    """Return what the audit of an environment found about a source, kernel by kernel."""
    audit = status.matrix.source(source).audit
    parts: list[RenderableType] = [Text("\naudit", style="bold")]
    if status.matrix.environment(env).line == "ngc":
        return [*parts, Text("  none: an image is not on the package index, and no other build speaks for it")]
    if env not in status.audits:
        reason = "made by another scanner" if env in status.stale_audits else "not made yet"
        return [*parts, Text(f"  {reason}: tfdet audit {env} --write")]
    finding = status.finding(env, source)
    if finding:
        parts.append(Text(f"  {finding.text}"))
        if finding.shows_order_dependence:
            parts.append(Text(f"  reached: {finding.reach.why}"))
        table = FactTable("  kernel", "atomics", "order-dependent", "why", "read from")
        for row in _kernels(finding.rows):
            table.add(*row)
        parts += [table] if finding.rows else []
    if audit:
        parts += [Text(f"  refuses: {text}") for text in status.audits[env].refusal_messages(audit)]
    parts.append(
        Text(f"  not seen: {audit.unauditable_reason if audit and audit.unauditable_reason else AUDIT_BLIND_SPOTS}")
    )
    parts.append(Text(f"  read it again: tfdet audit {env}"))
    return parts


def _kernels(rows: Iterable[KernelRow]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each shortened name, verdict and reason, with the number of such kernels."""
    groups: dict[tuple[str, str, str], list[tuple[str, audits.StoredFinding]]] = defaultdict(list)
    for row in rows:
        for finding in row.kernel.findings:
            key = row.signature[:_MAX_NAME_LENGTH], finding.order_dependent, finding.reason
            groups[key].append((row.kernel.name, finding))
    for (name, verdict, reason), group in groups.items():
        atomics = dict.fromkeys(
            " ".join(f"{kind}×{count}" for kind, count in finding.atomics.items()) for _, finding in group
        )
        archs = dict.fromkeys(arch for _, finding in group for arch in finding.archs.split())
        count = len({kernel for kernel, _ in group})
        yield (
            f"  {name}{f' ({count} kernels)' if count > 1 else ''}",
            ", ".join(atomics),
            verdict,
            reason,
            " ".join(archs),
        )


def _uncounted_devices(
    status: Status, records: Sequence[Record], signer_of: Callable[[Record], str]
) -> list[RenderableType]:
    """Return notes on devices whose unsigned records are not counted."""
    devices = {record.device.model for record in records if signer_of(record) == "unsigned"}
    return [
        Text(f"  unsigned records of {model} count in no table; what they would say: tfdet status --include-unsigned")
        for model in sorted(devices)
        if status.matrix.devices.requires_signature(model)
    ]


def _records(records: Sequence[Record], signer_of: Callable[[Record], str]) -> FactTable:
    table = FactTable("case", "solution", "device", "observation", "differed", "distinct", "ulp", "median", "ran on",
                   "code", "machine", "started", "signer", "what it said")  # fmt: skip
    for record in records:
        median = f"{record.median_seconds * 1e3:.2f} ms" if record.median_seconds is not None else ""
        error_text = f"{record.error.type}: {record.error.message}" if record.error else ""
        code = (record.device.details or {}).get("code")
        ran_on_and_code = " ".join(record.ran_on), " ".join(code) if isinstance(code, list) else ""
        max_ulp = "" if record.max_ulp is None else str(record.max_ulp)
        table.add(record.case, record.solution, record.device.model, record.observation,
                  f"{record.differed}/{record.runs}", str(record.distinct), max_ulp, median, *ran_on_and_code,
                  record.machine, record.started, signer_of(record), error_text[:160])  # fmt: skip
    return table


def _costs(costs: Sequence[Cost]) -> FactTable:
    table = FactTable("patch", "device", "what", "original", "replaced", "time", "memory", "smallest eager call")
    for cost in costs:
        eager_times = ""
        if cost.original_eager_seconds and cost.eager_seconds:
            eager_times = f"{cost.original_eager_seconds * 1e3:.2f} → {cost.eager_seconds * 1e3:.2f} ms"
        times = (f"{cost.original_seconds * 1e3:.2f} ms", f"{cost.seconds * 1e3:.2f} ms")
        table.add(cost.patch, cost.device, cost.size, *times, f"× {cost.time_ratio:.1f}",
                  f"× {cost.memory_ratio:.1f}", eager_times)  # fmt: skip
    return table


def _op_text(op: str, name: str) -> str:
    """Return an op's type and its name; an eager op's name, which has an @, only repeats the type and line."""
    return op if "@" in name or name == op else f"{op} ({name})"


_CAUSE_LABELS = ("Cause:", "Place:", "Fix:")


def cause_report(result: LocateResult) -> list[RenderableType]:
    """Return the result of `tfdet locate`, the first cause first."""
    if result.causes:
        return [Text(line, style="bold" if line.startswith(_CAUSE_LABELS) else "") for line in result.report]
    parts: list[RenderableType] = [Text(result.headline, style="bold green" if result.result == "same" else "bold red")]
    parts += [Text(line) for line in result.report]
    for culprit in result.culprits:
        table = FactTable("", "")
        gradient = _op_text(culprit.forward_op, culprit.forward_name or "") if culprit.forward_op else ""
        place = f"step {culprit.step}, {culprit.device}" if culprit.device else f"step {culprit.step}"
        facts = [
            ("op", _op_text(culprit.op_type, culprit.op_name)), ("gradient of", gradient),
            ("class", f"{culprit.class_}: {culprit.why}"), ("where", place),
            ("your line", f"{culprit.file}:{culprit.line}" if culprit.file else ""),
            ("", next((line.strip() for number, line in culprit.snippet if number == culprit.line), "")),
            ("matrix", culprit.source or ""), ("solution", culprit.solution or ""),
        ]  # fmt: skip
        for name, value in facts:
            if value:
                table.add(Text(name, style="dim"), value)
        for number, line in enumerate(culprit.lines):
            table.add(Text("" if number else "change", style="dim"), Text(line, style="green"))
        parts += [Text(), table]
    if result.values:
        parts += [Text(line) for line in ["", *value_text.report_lines(result.values.model_dump())]]
    if result.fix:
        style = "green" if result.fix.result == "repeats" else "yellow"
        parts += [
            Text(),
            Text("The advice, tried", style="bold"),
            *(Text(line, style=style) for line in result.fix.lines),
        ]
    parts += [Text(line, style="dim") for line in ["", *result.findings, *result.notes]]
    return parts
