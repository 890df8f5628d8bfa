"""Compare what a framework documents about each of its ops with what was measured: one row for each op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from tfdet.matrix import alerts, ops, source_readings
from tfdet.matrix.devices import CPU, GPU
from tfdet.matrix.field_types import Device
from tfdet.matrix.models import NONE
from tfdet.matrix.source_readings import ReadingKind
from tfdet.publish import audit_tables, refusals, variants
from tfdet.publish.verdict_symbols import symbol_with_counts
from tfdet.verdicts.infer import EQUAL_VERDICTS, CellKey, InferredCell, Verdict
from tfdet.verdicts.status import Status


class MeasurementColumn(NamedTuple):
    """A device and a solution under which ops were measured.  device: `cpu`, or the model of a GPU."""

    device: str
    solution: str

    @property
    def documented_device(self) -> Device:
        """The kind of device, `cpu` or `gpu`, that the documentation names."""
        return CPU if self.device == CPU else GPU

    @property
    def title(self) -> str:
        """CPU, none; nvidia-h200, UDA."""
        return f"{'CPU' if self.device == CPU else self.device}, {self.solution}"


@dataclass(frozen=True)
class OpRow:
    """One op of a build, as documentation, measurements and the build's binaries have it.

    documented: the documentation's entries of this op.  measured, verdicts: a mark and a verdict for each column, of
    the op in eager mode; cells: the whole cell, with every variant.  binary: what the audit found in its kernels.
    refusal_meanings: the alerts by which its code raises.  entries_with_alert: the documented entries that an alert of
    this build confirms; None if the build was not read.
    """

    op: ops.Op
    source: str
    documented: list[ops.DocumentedEntry]
    measured: list[str]
    verdicts: dict[MeasurementColumn, Verdict]
    binary: str = ""
    refusal_meanings: list[alerts.Meaning] = field(default_factory=list)
    entries_with_alert: frozenset[str] | None = None
    cells: dict[MeasurementColumn, InferredCell] = field(default_factory=dict)

    @property
    def is_documented(self) -> bool:
        return bool(self.documented or self.op.tags or self.op.tolerance)

    @property
    def has_float_atomics(self) -> bool:
        """Do its reachable CUDA kernels add floats atomically, that is in the order of threads?"""
        return self.binary not in ("", "0") and self.binary.removesuffix("°").isdigit()

    @property
    def is_notable(self) -> bool:
        return (
            self.is_documented
            or self.has_float_atomics
            or bool(self.refusal_meanings)
            or Verdict.NONDETERMINISTIC in self.verdicts.values()
            or Verdict.RAISES in self.verdicts.values()
            or any(variants.compiled(cell).verdict in variants.OUTCOME_VERBS for cell in self.cells.values())
        )

    @property
    def dtypes(self) -> str:
        """The dtypes that ran on a CPU, each with its mark without any solution."""
        return variants.dtype_marks(variants.dtypes(self.op, self.cells.get(MeasurementColumn(CPU, NONE))))

    @property
    def compiled(self) -> str:
        """The mark under torch.compile on a CPU, for each solution."""
        return variants.dtype_marks(
            {at.solution: variants.compiled(cell) for at, cell in self.cells.items() if at.device == CPU}
        )

    @property
    def refusals(self) -> str:
        """The alerts by which its code raises, and where: `_histc_cuda` (CUDA)."""
        return refusals.refusals_text(self.refusal_meanings)

    @property
    def documentation_text(self) -> str:
        """What the documentation says: raises (CUDA, backward)."""
        return "; ".join(dict.fromkeys(_entry_text(entry) for entry in self.documented))

    def disagreements(self, solution: str) -> Iterator[tuple[ReadingKind, str]]:
        """Pairs of sources that contradict each other: two lists, or a list and a measurement under `solution`."""
        if self.op.tolerance and not self.documented:
            yield (
                "tolerance",
                f"its gradient tests let two runs differ by {self.op.tolerance:g}; the documentation does not name it",
            )
        if self.op.backward and not self.op.tolerance and any(entry.backward for entry in self.documented):
            yield "gradient", "the documentation names its gradient; its gradient tests let no two runs differ"
        for device in dict.fromkeys(place.device for place in self.verdicts):
            yield from self._differs_from_docs(device, solution)
            yield from self._compiled(device, solution)
        if self.entries_with_alert is not None:
            yield from refusals.disagreements(self.documented, self.refusal_meanings, self.entries_with_alert)
        if any(_contradict(one, other) for one in self.documented for other in self.documented):
            yield (
                "documentation",
                "one entry of the documentation says that it is deterministic, another that it raises",
            )

    def _differs_from_docs(self, device: str, solution: str) -> Iterator[tuple[ReadingKind, str]]:
        """Contradictions between the documentation and the runs on a device; documentation of GPUs is not compared with
        runs on a CPU, nor the reverse.
        """
        at, under = MeasurementColumn(device, NONE), MeasurementColumn(device, solution)
        documented = {entry.says for entry in self.documented if at.documented_device in entry.devices}
        where, nowhere = (f"on {device}", "no GPU") if at.documented_device == GPU else ("on a CPU", "none")
        first, second = self.verdicts.get(at), self.verdicts.get(under)
        if first is Verdict.NONDETERMINISTIC and not documented:
            dtypes = self._dtypes(at, first)
            yield _kind(at, "differs"), f"it differs {where}{dtypes}; the documentation names it for {nowhere}"
        if second is Verdict.NONDETERMINISTIC:
            against = f"; the documentation says {' and '.join(sorted(documented))}" if documented else ""
            dtypes = self._dtypes(under, second)
            yield _kind(at, "differs-under"), f"it differs {where} under {solution}{dtypes}{against}"
        if second is Verdict.RAISES and "raises" not in documented:
            documentation = "says deterministic" if documented else f"names it for {nowhere}"
            dtypes = self._dtypes(under, second)
            yield _kind(at, "raises"), f"it raises {where} under {solution}{dtypes}; the documentation {documentation}"
        if second in _NO_ERROR and documented == {"raises"}:
            yield _kind(at, "no-error"), f"it does not raise {where} under {solution}; the documentation says raises"
        if second is Verdict.FAILED and first in _RAN:
            yield _kind(at, "fails-under"), f"it ends in another error {where} under {solution}, and in none without"

    def _dtypes(self, place: MeasurementColumn, verdict: Verdict) -> str:
        return variants.dtypes_note(self.op, self.cells[place], verdict) if place in self.cells else ""

    def _compiled(self, device: str, solution: str) -> Iterator[tuple[ReadingKind, str]]:
        """Where its behavior under torch.compile differs from eager mode."""
        for place in (MeasurementColumn(device, NONE), MeasurementColumn(device, solution)):
            alone, whole = self.verdicts.get(place, Verdict.BLANK), variants.compiled(self.cells.get(place)).verdict
            for does in variants.compiled_note(alone, whole):
                under = f" under {place.solution}" if place.solution != NONE else ""
                where = "on a CPU" if device == CPU else f"on {device}"
                yield _kind(place, "compiled"), does.format(where=f"{where}{under}")


# Verdicts of an op that ran on a device under the documented solution without an error.
_NO_ERROR = EQUAL_VERDICTS
_RAN = (Verdict.NONDETERMINISTIC, *EQUAL_VERDICTS)
_Behavior = Literal["differs", "differs-under", "raises", "no-error", "compiled", "fails-under"]


def _kind(place: MeasurementColumn, what: _Behavior) -> ReadingKind:
    """The kind of a disagreement. GPUs have kinds of their own, as reading a CPU kernel explains nothing of a GPU's."""
    return _GPU_KINDS[what] if place.documented_device == GPU else what


_GPU_KINDS: dict[str, ReadingKind] = {
    "differs": "gpu-differs",
    "differs-under": "gpu-differs-under",
    "raises": "gpu-raises",
    "no-error": "gpu-no-error",
    "compiled": "gpu-compiled",
    "fails-under": "gpu-fails-under",
}


def _contradict(one: ops.DocumentedEntry, other: ops.DocumentedEntry) -> bool:
    """Do two documented entries contradict each other about the same call?"""
    same_call = not one.modes or not other.modes or set(one.modes) & set(other.modes)
    return bool(
        one.api == other.api
        and one.says != other.says
        and set(one.devices) & set(other.devices)
        and same_call
        and one.backward == other.backward
    )


def _entry_text(entry: ops.DocumentedEntry) -> str:
    where = {("cpu", "gpu"): "", ("cpu",): "CPU", ("gpu",): "CUDA"}[tuple(entry.devices)]
    more = [part for part in (where, "backward" if entry.backward else "", *entry.modes) if part]
    return entry.says + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True)
class Disagreement:
    """A contradiction between two sources about an op.

    read: what people read about it in PyTorch's sources; empty if nobody has looked.  places: (file:line, address).
    """

    row: OpRow
    kind: ReadingKind
    text: str
    read: str
    places: list[tuple[str, str]]


@dataclass(frozen=True)
class OpComparison:
    """The comparison for one environment."""

    environment: str
    solution: str
    columns: list[MeasurementColumn]
    rows: list[OpRow] = field(repr=False)
    ops: ops.Ops = field(repr=False)
    readings: source_readings.Readings = field(repr=False)

    @cached_property
    def notable_rows(self) -> list[OpRow]:
        return [row for row in self.rows if row.is_notable]

    @cached_property
    def disagreements(self) -> list[Disagreement]:
        return [self._read(row, *found) for row in self.rows for found in row.disagreements(self.solution)]

    def _read(self, row: OpRow, kind: ReadingKind, text: str) -> Disagreement:
        known = self.ops.lines
        found = source_readings.find_reading(self.readings, known, row.op.key, kind)
        if found is None:
            return Disagreement(row, kind, text, "", [])
        root = f"{self.readings.repository}/blob/{self.ops.commit}"
        places = [(place.file, known[place.key]) for place in found.locations if place.key in known]
        shown = [(f"{file}:{line}", f"{root}/{file}#L{line}") for file, line in places]
        release = self.readings.release
        root = f"{self.readings.repository}/blob/{release}"
        shown += [(f"{c.file}:{c.line} ({release})", f"{root}/{c.file}#L{c.line}") for c in found.excerpts]
        return Disagreement(row, kind, text, found.finding, shown)

    @cached_property
    def devices(self) -> list[str]:
        """The devices on which ops ran; the CPU is always included, and first."""
        return list(dict.fromkeys(place.device for place in self.columns))

    @cached_property
    def coverage(self) -> dict[str, list[tuple[str, int]]]:
        """By device: how many ops with sample inputs ran, and why the others did not."""
        return {device: Counter(_why(row, device) for row in self.rows).most_common() for device in self.devices}

    @cached_property
    def coverage_by_variant(self) -> list[tuple[str, str, int, list[tuple[str, int]]]]:
        """Coverage of the further dtypes and of torch.compile: (device, e.g. `in bfloat16`, number of ops, how many
        ran and why the others did not).
        """
        return [
            (device, *found)
            for device in self.devices
            for found in variants.coverage(
                [(row.op, row.cells.get(MeasurementColumn(device, NONE))) for row in self.rows]
            )
        ]

    @property
    def tagged(self) -> int:
        return sum("nondeterministic_bitwise" in row.op.tags for row in self.rows)


def _binary(status: Status, environment: str, source: str) -> str:
    """The number of order-dependent kernels, or what else the audit of that build found."""
    known = status.matrix.sources.get(source)
    if environment not in status.audits or known is None or known.audit is None:
        return ""
    return audit_tables.kernel_count_text(status.finding(environment, source)) or "not seen"


def _why(row: OpRow, device: str) -> str:
    verdict = row.verdicts.get(MeasurementColumn(device, NONE), Verdict.BLANK)
    if not row.op.samples and verdict in (Verdict.BLANK, Verdict.UNSUPPORTED):
        return "no samples in the dtypes that are tried"
    return variants.run_outcome(verdict)


def compare_ops(folder: Path, status: Status, framework: str) -> list[OpComparison]:
    """folder: matrix/."""
    readings = source_readings.load(folder, framework)
    meanings = alerts.load_meanings(folder, framework)
    names, status = ops.load_names(folder, framework), replace(status, matrix=status.matrix.for_framework(framework))
    if names is None:
        return []
    return [
        _compare(status, names, _SourceReadings(readings, meanings, alerts.load(folder, key)), key, some)
        for key, some in _sort_by_version(ops.load_ops(folder, framework))
    ]


@dataclass(frozen=True)
class _SourceReadings:
    """What people read in the framework's sources, and what a script extracted from the build's binaries."""

    readings: source_readings.Readings
    meanings: alerts.Meanings | None
    found: alerts.Alerts | None

    @cached_property
    def refusal_meanings(self) -> list[alerts.Meaning]:
        return alerts.meanings_in_build(self.meanings, self.found)

    @cached_property
    def entries_with_alert(self) -> frozenset[str] | None:
        return frozenset(api for one in self.refusal_meanings for api in one.apis) if self.found else None


def _sort_by_version(found: dict[str, ops.Ops]) -> list[tuple[str, ops.Ops]]:
    """torch2.4 before torch2.13."""
    return sorted(found.items(), key=lambda item: [int(part) for part in item[1].framework_version.split(".")[:2]])


def _compare(status: Status, names: ops.NameMappings, read: _SourceReadings, key: str, some: ops.Ops) -> OpComparison:
    meant = {id(entry): ops.ops_of_entry(names, entry) for entry in some.documented}
    sources = {names.prefix + op.key for op in some.ops}
    places = list(_columns(status, key, sources))

    def row(op: ops.Op) -> OpRow:
        source = names.prefix + op.key
        cells = {place: status.verdict(CellKey(key, place.device, source, place.solution)) for place in places}
        alone = {place: variants.eager(cell) for place, cell in cells.items()}
        return OpRow(
            op,
            source,
            [entry for entry in some.documented if op.key in meant[id(entry)]],
            [symbol_with_counts(cell) for cell in alone.values()],
            {place: cell.verdict for place, cell in alone.items()},
            _binary(status, key, source),
            [one for one in read.refusal_meanings if op.key in one.ops],
            read.entries_with_alert,
            cells,
        )

    return OpComparison(key, names.solution, places, [row(op) for op in some.ops], some, read.readings)


def _columns(status: Status, environment: str, sources: Set[str]) -> Iterator[MeasurementColumn]:
    """The columns: the general solutions of a processor, and those of each GPU, measured or emulated, under which an op
    counts.
    """
    known = status.matrix.solutions
    general = sorted((s for s, solution in known.items() if solution.applies_to_all_ops), key=lambda s: known[s].order)
    yield from (MeasurementColumn(CPU, solution) for solution in general if CPU in known[solution].devices)
    ran = {
        MeasurementColumn(key.device, key.solution)
        for key in status.verdicts
        if key.environment == environment and key.source in sources
    }
    for gpu in [*status.gpus, *status.emulated_models]:
        yield from (MeasurementColumn(gpu, s) for s in general if MeasurementColumn(gpu, s) in ran)
