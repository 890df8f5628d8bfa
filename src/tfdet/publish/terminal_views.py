"""Tables and texts that the commands print on a terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from tfdet.matrix.devices import GPU
from tfdet.matrix.models import NONE, Environment
from tfdet.matrix.plan import plan_cells
from tfdet.publish import proof_views, variants
from tfdet.publish.tables import version_ranges
from tfdet.publish.terminal_lists import FactTable
from tfdet.publish.verdict_symbols import SYMBOLS
from tfdet.store import audits
from tfdet.store.costs import Cost
from tfdet.store.records import Record
from tfdet.verdicts.audit_findings import KernelRow
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.rebuild import RebuildResult
from tfdet.verdicts.selection import Selection
from tfdet.verdicts.status import Status, StatusCell
from tfdet.verdicts.status_loading import CellChange
from tfdet_common.defaults import MAX_TABLE_ROWS
from tfdeterminism.trace.report import value_text

NO_AUDIT_NOTE = (
    "cuDNN and cuBLAS (not in the wheel), code that XLA generates at run time, races of plain stores, which kernel the "
    "host picks; what is shipped need not be reached"
)
_LONGEST_NAME = 200  # characters of a kernel's name: Eigen's have thousands

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
    """A verdict with its numbers: nondeterministic 40/40, not shown to differ 0/40 (≤ 7.2%)."""
    words = str(cell.verdict)
    if cell.verdict is Verdict.NONDETERMINISTIC:
        words += f" {cell.differed}/{cell.runs}"
    elif cell.bound95 is not None:
        words += f" 0/{cell.runs} (≤ {cell.bound95:.1%})"
    if cell.verdict in (Verdict.DETERMINISTIC, Verdict.TOO_FEW):
        words += f", {cell.controls_differed} of {cell.cases} cases' control differed"
    words += proof_views.proof_note(cell) + variants.variants_note(cell)
    return Text(words, style=_STYLE.get(cell.verdict, ""))


def cell_table(found: Iterable[StatusCell]) -> FactTable:
    table = FactTable("source", "solution", "device", "verdict", "time", "backing", "claim")
    for cell in found:
        ratio = f"× {cell.cell.time_ratio:.2f}" if cell.cell.time_ratio else ""
        table.add(cell.key.source, cell.key.solution, cell.key.device, verdict_text(cell.cell), ratio,
                  cell.backing_text, cell.claimed_outcome or "")  # fmt: skip
    return table


def run_result(cells: Sequence[StatusCell], whole: bool) -> RenderableType:
    """What a run showed: a row for each cell where they fit a screen or are all asked for, else its headline."""
    return cell_table(cells) if whole or len(cells) <= MAX_TABLE_ROWS else run_headline(cells)


def run_headline(cells: Sequence[StatusCell]) -> RenderableType:
    """A row for each source that differs or fails, with the solutions that mend it."""
    by_source: dict[str, dict[Verdict, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        by_source[cell.key.source][cell.cell.verdict].append(cell.key.solution)
    telling = {source: found for source, found in by_source.items() if found.keys() & set(_HEADLINE)}
    headers = {verdict: text for verdict, text in _HEADLINE.items() if any(verdict in f for f in telling.values())}
    table = FactTable("source", *headers.values())
    for source, found in telling.items():
        table.add(source, *(Text(", ".join(found[v]), style=_STYLE[v]) for v in headers))
    rest = (
        f"{len(by_source) - len(telling)} more sources in which nothing differed; --table prints all {len(cells)} cells"
    )
    return Group(table, Text(rest, style="dim")) if telling else Text(rest, style="dim")


_HEADLINE = {
    Verdict.NONDETERMINISTIC: "differs under",
    Verdict.SCHEDULE_INDEPENDENT: "proved under",
    Verdict.DETERMINISTIC: "deterministic under",
    Verdict.TOO_FEW: "too few runs under",
    Verdict.FAILED: "failed under",
}


def change_table(found: Iterable[CellChange]) -> FactTable:
    """What records would change in the tables."""
    table = FactTable("environment", "device", "source", "solution", "now", "then", "backing")
    for change in found:
        key, now = change.after.key, verdict_text(change.before.cell)
        table.add(key.environment, key.device, key.source, key.solution, now if now.plain else "never run",
                  verdict_text(change.after.cell), change.after.backing_text)  # fmt: skip
    return table


def rebuild_table(found: Iterable[RebuildResult]) -> FactTable:
    """The recorded verdicts beside the reproduced ones."""
    table = FactTable("environment", "device", "source", "solution", "recorded", "reproduced", "")
    for one in found:
        key = one.key
        table.add(key.environment, key.device, key.source, key.solution, verdict_text(one.recorded),
                  verdict_text(one.reproduced), one.answer)  # fmt: skip
    return table


MARKS_LEGEND = (
    "✗ nondeterministic  ✓ deterministic (its control differed)  ? too few runs\n"
    "∎ schedule-independent (proved)  ≈ not shown to differ  – unsupported"
)
AUDITED_LEGEND = (
    "a audited: read from the binaries, not run (docs/how-to/audit-a-build.md)  "
    "s shipped: whether the op reaches these kernels is not established"
)


def status(found: Status, asked: Selection, width: int) -> RenderableType:
    """Cells that ran: a column an environment where there is room, or else which environments showed what."""
    measured = [cell for cell in asked.cells(found) if cell.was_run]
    legend = Text(MARKS_LEGEND + "\n", style="dim")
    keys = {c.key.environment for c in measured}
    needed = [max((len(c.key.source) for c in measured), default=0)]
    needed += [max((len(c.key.solution) for c in measured), default=0)]
    needed += [max(map(len, column)) for column in {(c.key.environment, c.key.device) for c in measured}]
    if not measured:
        parts: list[RenderableType] = [Text("no cell that ran is among these")]
    elif sum(needed) + 2 * len(needed) <= width:
        parts = [legend, _by_environment(found, measured)]
    else:
        among = " ".join(key for key in found.matrix.environments if key in keys)
        ranges = Text(f"Ranges cover measured environments only: {among}\n", style="dim")
        parts = [legend, ranges, _by_mark(found, measured)]
    if audited := _audited(found, asked):
        parts += [
            Text("\non GPUs, without any solution", style="bold"),
            Text(AUDITED_LEGEND + "\n", style="dim"),
            audited,
        ]
    return Group(*parts)


def _by_environment(found: Status, measured: Sequence[StatusCell]) -> FactTable:
    columns = list(dict.fromkeys((c.key.environment, c.key.device) for c in measured))
    columns.sort(key=lambda column: (column[1], list(found.matrix.environments).index(column[0])))
    table = FactTable("source", "solution", *(f"{env}\n{device}" for env, device in columns))
    by_place = {(c.key.source, c.key.solution, c.key.environment, c.key.device): c for c in measured}
    for source, solution in dict.fromkeys((c.key.source, c.key.solution) for c in measured):
        row = [by_place.get((source, solution, *column)) for column in columns]
        table.add(source, solution, *(_mark(cell.cell.verdict) if cell else "" for cell in row))
    return table


def _by_mark(found: Status, measured: Sequence[StatusCell]) -> FactTable:
    """Under each source its solutions, and what which environments showed: ✗ TF 1.14 to 2.8; ✓ TF 2.9 to 2.21."""
    environments = found.matrix.environments
    ran = {
        device: {c.key.environment for c in measured if c.key.device == device}
        for device in (*found.measured_models, *found.emulated_models)
    }
    among = {device: [e for key, e in environments.items() if key in keys] for device, keys in ran.items()}
    rows: dict[tuple[str, str, str], list[StatusCell]] = {}
    for cell in measured:
        rows.setdefault((cell.key.source, cell.key.solution, cell.key.device), []).append(cell)
    table = FactTable("source and solution", "device", "what which environments showed")
    before = ""
    for (source, solution, device), mine in rows.items():
        if source != before:
            table.add_heading(source)
            before = source
        said = Text()
        for verdict in dict.fromkeys(c.cell.verdict for c in mine):
            showing = [environments[c.key.environment] for c in mine if c.cell.verdict is verdict]
            where = version_ranges(showing, among[device], found.matrix.frameworks)
            said += (
                Text("; " if said else "") + Text(SYMBOLS[verdict], style=_STYLE.get(verdict, "")) + Text(f" {where}")
            )
        table.add(f"  {solution}", device, said)
    return table


def _audited(found: Status, asked: Selection) -> FactTable | None:
    """What the binaries hold: a row a source and finding, with the builds that it is of.  It is no verdict of a run."""
    if asked.devices or asked.verdicts:
        return None
    environments = found.matrix.environments
    among = [environments[key] for key in environments if key in found.audits]
    selected = [key for key in asked.builds(found) if key in found.audits]
    held: dict[tuple[str, str, str], list[Environment]] = {}
    for source in sorted(found.matrix.sources, key=lambda name: found.matrix.sources[name].sort_key):
        if asked.sources and source not in asked.sources:
            continue
        for key in selected:
            cell = found.cell(CellKey(key, GPU, source, NONE))
            if cell.finding and (cell.audited or cell.finding.is_unchecked):
                row = source, "a" if cell.audited else "s", cell.finding.text
                held.setdefault(row, []).append(environments[key])
    table = FactTable("source", "", "the binaries hold", "builds")
    for (source, mark, text), builds in held.items():
        table.add(source, mark, text, version_ranges(builds, among, found.matrix.frameworks))
    return table if held else None


def _mark(verdict: Verdict) -> Text:
    return Text(SYMBOLS[verdict], style=_STYLE.get(verdict, ""))


def show(
    found: Status,
    env: str,
    source: str,
    records: Sequence[Record],
    costs: Sequence[Cost],
    signer_of: Callable[[Record], str] = lambda record: "",
) -> list[RenderableType]:
    """All that is known of one environment and source. signer_of: of a record, `unsigned` if it has none."""
    entry = found.matrix.source(source)
    parts: list[RenderableType] = [Text(f"{entry.title}  ({env})", style="bold")]
    parts.append(cell_table(c for c in found.cells if c.key.environment == env and c.key.source == source))
    parts.append(Text("\nclaims", style="bold"))
    environment = found.matrix.environment(env)
    for claim in entry.claims:
        if claim.covers(environment):
            solutions = " or ".join(claim.solutions)
            parts.append(Text(f"  {claim.device}: {claim.outcome} by {solutions}  [{claim.cite[0]}]"))
    parts += [Text(line, style="bold" * (not number)) for number, line in enumerate(proof_views.explain(records))]
    parts += _audit(found, env, source)
    parts.append(Text("\nrecords", style="bold"))
    parts.append(_records(records, signer_of))
    parts += _uncounted_devices(found, records, signer_of)
    if costs:
        parts += [Text("\nwhat replacing the op costs", style="bold"), _costs(costs)]
    parts.append(Text("\nnot run, and why", style="bold"))
    for cell in plan_cells(found.matrix, env):
        if cell.source == source and cell.reason and cell.device == cell.claim_device:
            parts.append(Text(f"  {cell.device} {cell.solution}: {cell.reason}"))
    parts.append(Text("\nrun it again", style="bold"))
    devices = sorted({found.matrix.devices.kinds[record.device.kind].cli_name for record in records} or {GPU})
    parts += [Text(f"  tfdet run {env} --device {device} --source {source}") for device in devices]
    provers = sorted({found.matrix.devices.kinds[r.device.kind].cli_name for r in records if r.proof})
    parts += [Text(f"  tfdet run {env} --device {device} --source {source} --prove") for device in provers]
    return parts


def _audit(found: Status, env: str, source: str) -> list[RenderableType]:
    """What the binaries of that environment hold of the source, kernel by kernel."""
    audit = found.matrix.source(source).audit
    parts: list[RenderableType] = [Text("\naudit", style="bold")]
    if found.matrix.environment(env).line == "ngc":
        return [*parts, Text("  none: an image is not on the package index, and no other build speaks for it")]
    if env not in found.audits:
        why = "made by another scanner" if env in found.stale_audits else "not made yet"
        return [*parts, Text(f"  {why}: tfdet audit {env} --write")]
    finding = found.finding(env, source)
    if finding:
        parts.append(Text(f"  {finding.text}"))
        if finding.is_conclusive:
            parts.append(Text(f"  reached: {finding.reach.why}"))
        table = FactTable("  kernel", "atomics", "order-dependent", "why", "read from")
        for row in _kernels(finding.rows):
            table.add(*row)
        parts += [table] if finding.rows else []
    if audit:
        parts += [Text(f"  refuses: {text}") for text in found.audits[env].refusal_messages(audit)]
    parts.append(
        Text(f"  not seen: {audit.unauditable_reason if audit and audit.unauditable_reason else NO_AUDIT_NOTE}")
    )
    parts.append(Text(f"  read it again: tfdet audit {env}"))
    return parts


def _kernels(rows: Iterable[KernelRow]) -> Iterator[tuple[str, ...]]:
    """One for each name and reason: kernels of several libraries, or whose names are cut, are counted."""
    alike: dict[tuple[str, str, str], list[tuple[str, audits.StoredFinding]]] = defaultdict(list)
    for row in rows:
        for held in row.kernel.findings:
            key = row.signature[:_LONGEST_NAME], held.order_dependent, held.reason
            alike[key].append((row.kernel.name, held))
    for (name, answer, reason), some in alike.items():
        atomics = dict.fromkeys(" ".join(f"{kind}×{count}" for kind, count in held.atomics.items()) for _, held in some)
        archs = dict.fromkeys(arch for _, held in some for arch in held.archs.split())
        count = len({kernel for kernel, _ in some})
        yield (
            f"  {name}{f' ({count} kernels)' if count > 1 else ''}",
            ", ".join(atomics),
            answer,
            reason,
            " ".join(archs),
        )


def _uncounted_devices(
    found: Status, records: Sequence[Record], signer_of: Callable[[Record], str]
) -> list[RenderableType]:
    """Notes on devices whose unsigned records are not counted."""
    devices = {r.device.model for r in records if signer_of(r) == "unsigned"}
    return [
        Text(f"  unsigned records of {model} count in no table; what they would say: tfdet status --include-unsigned")
        for model in sorted(devices)
        if found.matrix.devices.requires_signature(model)
    ]


def _records(records: Sequence[Record], signer_of: Callable[[Record], str]) -> FactTable:
    table = FactTable("case", "solution", "device", "observation", "differed", "distinct", "ulp", "median", "ran on",
                   "code", "machine", "started", "signer", "what it said")  # fmt: skip
    for r in records:
        median = f"{r.median_seconds * 1e3:.2f} ms" if r.median_seconds is not None else ""
        said = f"{r.error.type}: {r.error.message}" if r.error else ""
        code = (r.device.details or {}).get("code")
        places = " ".join(r.ran_on), " ".join(code) if isinstance(code, list) else ""
        table.add(r.case, r.solution, r.device.model, r.observation, f"{r.differed}/{r.runs}", str(r.distinct),
                  "" if r.max_ulp is None else str(r.max_ulp), median, *places, r.machine, r.started,
                  signer_of(r), said[:160])  # fmt: skip
    return table


def _costs(costs: Sequence[Cost]) -> FactTable:
    table = FactTable("patch", "device", "what", "original", "replaced", "time", "memory", "smallest eager call")
    for cost in costs:
        small = ""
        if cost.original_eager_seconds and cost.eager_seconds:
            small = f"{cost.original_eager_seconds * 1e3:.2f} → {cost.eager_seconds * 1e3:.2f} ms"
        times = (f"{cost.original_seconds * 1e3:.2f} ms", f"{cost.seconds * 1e3:.2f} ms")
        table.add(cost.patch, cost.device, cost.size, *times, f"× {cost.time_ratio:.1f}",
                  f"× {cost.memory_ratio:.1f}", small)  # fmt: skip
    return table


def _named(op: str, name: str) -> str:
    return op if "@" in name or name == op else f"{op} ({name})"


_CAUSE_LABELS = ("Cause:", "Place:", "Fix:")


def cause_report(found: LocateResult) -> list[RenderableType]:
    """What the debug tool found, the first cause first."""
    if found.causes:
        return [Text(line, style="bold" if line.startswith(_CAUSE_LABELS) else "") for line in found.report]
    parts: list[RenderableType] = [Text(found.headline, style="bold green" if found.result == "same" else "bold red")]
    parts += [Text(line) for line in found.report]
    for culprit in found.culprits:
        table = FactTable("", "")
        gradient = _named(culprit.forward_op, culprit.forward_name or "") if culprit.forward_op else ""
        place = f"step {culprit.step}, {culprit.device}" if culprit.device else f"step {culprit.step}"
        facts = [
            ("op", _named(culprit.op_type, culprit.op_name)), ("gradient of", gradient),
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
    if found.values:
        parts += [Text(line) for line in ["", *value_text.report_lines(found.values.model_dump())]]
    if found.fix:
        style = "green" if found.fix.result == "repeats" else "yellow"
        parts += [
            Text(),
            Text("The advice, tried", style="bold"),
            *(Text(line, style=style) for line in found.fix.lines),
        ]
    parts += [Text(line, style="dim") for line in ["", *found.findings, *found.notes]]
    return parts
