"""Compare, op by op, what a framework documents about determinism with what was measured."""

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
from tfdet.verdicts.infer import NO_DIFFERENCE_VERDICTS, CellKey, InferredCell, Verdict
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
    def where(self) -> str:
        """Where the ops ran, in a sentence: "on a CPU", "on nvidia-h200"."""
        return "on a CPU" if self.device == CPU else f"on {self.device}"

    @property
    def title(self) -> str:
        """A column's title: "CPU, none"; "nvidia-h200, UDA" (torch.use_deterministic_algorithms)."""
        return f"{'CPU' if self.device == CPU else self.device}, {self.solution}"


@dataclass(frozen=True)
class OpRow:
    """One op of a build: its documentation, its measurements, and what was read from the build's binaries.

    source: the op's key among the sources of nondeterminism.  documented: the documentation's entries of this op.
    measured, verdicts: a mark and a verdict for each column, of the op in eager mode.  cells: the cell of each column,
    with all variants.
    binary: the number of order-dependent kernels that the audit found, or a mark.
    refusal_meanings: the alerts by which its code raises.  entries_with_alert: the documented entries that an alert of
    this build confirms; None if the alerts of the build were not extracted.
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
        """Whether CUDA kernels that it can execute add floats by atomics, so in the order of the threads."""
        return self.binary not in ("", "0") and self.binary.removesuffix("°").isdigit()

    @property
    def is_notable(self) -> bool:
        """Whether a list of the framework names it, its kernels add floats atomically, or it differed or can raise."""
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
            {column.solution: variants.compiled(cell) for column, cell in self.cells.items() if column.device == CPU}
        )

    @property
    def raising_alerts(self) -> str:
        """The alerts in the framework's source code by which the op raises, and where: `_histc_cuda` (CUDA)."""
        return refusals.refusals_text(self.refusal_meanings)

    @property
    def documentation_text(self) -> str:
        """The texts of its documented entries, such as: raises (CUDA, backward)."""
        return "; ".join(dict.fromkeys(_entry_text(entry) for entry in self.documented))

    def disagreements(self, solution: str) -> Iterator[tuple[ReadingKind, str]]:
        """Yield (kind, text) of contradictions between two lists, or a list and a measurement under `solution`."""
        if self.op.tolerance and not self.documented:
            yield (
                "tolerance",
                f"its gradient tests let two runs differ by {self.op.tolerance:g}; the documentation does not name it",
            )
        if self.op.backward and not self.op.tolerance and any(entry.backward for entry in self.documented):
            yield "gradient", "the documentation names its gradient; its gradient tests let no two runs differ"
        for device in dict.fromkeys(column.device for column in self.verdicts):
            yield from self._differs_from_docs(device, solution)
            yield from self._compiled_differences(device, solution)
        if self.entries_with_alert is not None:
            yield from refusals.disagreements(self.documented, self.refusal_meanings, self.entries_with_alert)
        if any(_do_contradict(first, second) for first in self.documented for second in self.documented):
            yield (
                "documentation",
                "one entry of the documentation says that it is deterministic, another that it raises",
            )

    def _differs_from_docs(self, device: str, solution: str) -> Iterator[tuple[ReadingKind, str]]:
        """Yield the contradictions between the documentation and the runs on a device.

        Documentation of GPUs is compared only with runs on GPUs, that of the CPU only with runs on CPUs.
        """
        default, with_solution = MeasurementColumn(device, NONE), MeasurementColumn(device, solution)
        documented = {entry.says for entry in self.documented if default.documented_device in entry.devices}
        where, nowhere = default.where, "no GPU" if default.documented_device == GPU else "none"
        default_verdict, solution_verdict = self.verdicts.get(default), self.verdicts.get(with_solution)
        if default_verdict is Verdict.NONDETERMINISTIC and not documented:
            dtypes = self._dtypes(default, default_verdict)
            yield _kind(default, "differs"), f"it differs {where}{dtypes}; the documentation names it for {nowhere}"
        if solution_verdict is Verdict.NONDETERMINISTIC:
            contradicted = f"; the documentation says {' and '.join(sorted(documented))}" if documented else ""
            dtypes = self._dtypes(with_solution, solution_verdict)
            yield _kind(default, "differs-under"), f"it differs {where} under {solution}{dtypes}{contradicted}"
        if solution_verdict is Verdict.RAISES and "raises" not in documented:
            documentation = "says deterministic" if documented else f"names it for {nowhere}"
            dtypes = self._dtypes(with_solution, solution_verdict)
            yield (
                _kind(default, "raises"),
                f"it raises {where} under {solution}{dtypes}; the documentation {documentation}",
            )
        if solution_verdict in _NO_ERROR and documented == {"raises"}:
            yield (
                _kind(default, "no-error"),
                f"it does not raise {where} under {solution}; the documentation says raises",
            )
        if solution_verdict is Verdict.FAILED and default_verdict in _RAN:
            yield (
                _kind(default, "fails-under"),
                f"it ends in another error {where} under {solution}, and in none without",
            )

    def _dtypes(self, column: MeasurementColumn, verdict: Verdict) -> str:
        return variants.dtypes_note(self.op, self.cells[column], verdict) if column in self.cells else ""

    def _compiled_differences(self, device: str, solution: str) -> Iterator[tuple[ReadingKind, str]]:
        """Yield the differences between torch.compile and eager mode."""
        for column in (MeasurementColumn(device, NONE), MeasurementColumn(device, solution)):
            eager_verdict = self.verdicts.get(column, Verdict.BLANK)
            compiled_verdict = variants.compiled(self.cells.get(column)).verdict
            for template in variants.compiled_note(eager_verdict, compiled_verdict):
                under = f" under {column.solution}" if column.solution != NONE else ""
                yield _kind(column, "compiled"), template.format(where=f"{column.where}{under}")


# Verdicts of an op that ran on a device under the documented solution without an error.
_NO_ERROR = NO_DIFFERENCE_VERDICTS
_RAN = (Verdict.NONDETERMINISTIC, *NO_DIFFERENCE_VERDICTS)
_Behavior = Literal["differs", "differs-under", "raises", "no-error", "compiled", "fails-under"]


def _kind(column: MeasurementColumn, behavior: _Behavior) -> ReadingKind:
    """Return the kind of a disagreement; those on GPUs have their own kinds, as their kernels are other ones."""
    return _GPU_KINDS[behavior] if column.documented_device == GPU else behavior


_GPU_KINDS: dict[str, ReadingKind] = {
    "differs": "gpu-differs",
    "differs-under": "gpu-differs-under",
    "raises": "gpu-raises",
    "no-error": "gpu-no-error",
    "compiled": "gpu-compiled",
    "fails-under": "gpu-fails-under",
}


def _do_contradict(first: ops.DocumentedEntry, second: ops.DocumentedEntry) -> bool:
    """Return whether two documented entries contradict each other about the same call."""
    same_call = not first.modes or not second.modes or set(first.modes) & set(second.modes)
    return bool(
        first.api == second.api
        and first.says != second.says
        and set(first.devices) & set(second.devices)
        and same_call
        and first.backward == second.backward
    )


def _entry_text(entry: ops.DocumentedEntry) -> str:
    where = {("cpu", "gpu"): "", ("cpu",): "CPU", ("gpu",): "CUDA"}[tuple(entry.devices)]
    details = [part for part in (where, "backward" if entry.backward else "", *entry.modes) if part]
    return entry.says + (f" ({', '.join(details)})" if details else "")


@dataclass(frozen=True)
class Disagreement:
    """A contradiction between two sources about an op.

    read: what was read about it in PyTorch's sources; empty if nothing was.  places: (file:line, URL).
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
        return [
            self._disagreement(row, kind, text) for row in self.rows for kind, text in row.disagreements(self.solution)
        ]

    def _disagreement(self, row: OpRow, kind: ReadingKind, text: str) -> Disagreement:
        line_by_key = self.ops.lines
        reading = source_readings.find_reading(self.readings, line_by_key, row.op.key, kind)
        if reading is None:
            return Disagreement(row, kind, text, "", [])
        root = f"{self.readings.repository}/blob/{self.ops.commit}"
        places = [
            (location.file, line_by_key[location.key]) for location in reading.locations if location.key in line_by_key
        ]
        links = [(f"{file}:{line}", f"{root}/{file}#L{line}") for file, line in places]
        release = self.readings.release
        root = f"{self.readings.repository}/blob/{release}"
        links += [
            (f"{excerpt.file}:{excerpt.line} ({release})", f"{root}/{excerpt.file}#L{excerpt.line}")
            for excerpt in reading.excerpts
        ]
        return Disagreement(row, kind, text, reading.finding, links)

    @cached_property
    def devices(self) -> list[str]:
        """The devices on which ops ran; the CPU is always included, and first."""
        return list(dict.fromkeys(column.device for column in self.columns))

    @cached_property
    def coverage(self) -> dict[str, list[tuple[str, int]]]:
        """{device: (outcome, number of ops)}: how many ops with sample inputs ran, and why the others did not."""
        return {
            device: Counter(_run_outcome(row, device) for row in self.rows).most_common() for device in self.devices
        }

    @cached_property
    def coverage_by_variant(self) -> list[tuple[str, str, int, list[tuple[str, int]]]]:
        """Coverage of further dtypes and of torch.compile: (device, e.g. `in bfloat16`, number of ops, outcomes)."""
        return [
            (device, *coverage)
            for device in self.devices
            for coverage in variants.coverage(
                [(row.op, row.cells.get(MeasurementColumn(device, NONE))) for row in self.rows]
            )
        ]

    @property
    def tagged_count(self) -> int:
        """The number of ops with the tag `nondeterministic_bitwise`."""
        return sum("nondeterministic_bitwise" in row.op.tags for row in self.rows)


def _binary(status: Status, environment: str, source: str) -> str:
    """Return the number of order-dependent kernels, or a mark for what else the audit of that build found."""
    source_model = status.matrix.sources.get(source)
    if environment not in status.audits or source_model is None or source_model.audit is None:
        return ""
    return audit_tables.kernel_count_text(status.finding(environment, source)) or "not seen"


def _run_outcome(row: OpRow, device: str) -> str:
    verdict = row.verdicts.get(MeasurementColumn(device, NONE), Verdict.BLANK)
    if not row.op.samples and verdict in (Verdict.BLANK, Verdict.UNSUPPORTED):
        return "no samples in the dtypes that are tried"
    return variants.run_outcome(verdict)


def compare_ops(folder: Path, status: Status, framework: str) -> list[OpComparison]:
    """Return the comparisons of a framework's builds, the oldest first.  folder: matrix/."""
    readings = source_readings.load(folder, framework)
    meanings = alerts.load_meanings(folder, framework)
    names, status = ops.load_names(folder, framework), replace(status, matrix=status.matrix.for_framework(framework))
    if names is None:
        return []
    return [
        _compare(status, names, _SourceReadings(readings, meanings, alerts.load(folder, key)), key, build_ops)
        for key, build_ops in _sort_by_version(ops.load_ops(folder, framework))
    ]


@dataclass(frozen=True)
class _SourceReadings:
    """The readings of the framework's sources, and the alerts that a script extracted from the build's binaries."""

    readings: source_readings.Readings
    meanings: alerts.Meanings | None
    build_alerts: alerts.Alerts | None

    @cached_property
    def refusal_meanings(self) -> list[alerts.Meaning]:
        return alerts.meanings_in_build(self.meanings, self.build_alerts)

    @cached_property
    def entries_with_alert(self) -> frozenset[str] | None:
        return (
            frozenset(api for meaning in self.refusal_meanings for api in meaning.apis) if self.build_alerts else None
        )


def _sort_by_version(builds: dict[str, ops.Ops]) -> list[tuple[str, ops.Ops]]:
    """Sort builds by version numbers: torch2.4 before torch2.13."""
    return sorted(builds.items(), key=lambda item: [int(part) for part in item[1].framework_version.split(".")[:2]])


def _compare(
    status: Status, names: ops.NameMappings, extracted: _SourceReadings, key: str, build_ops: ops.Ops
) -> OpComparison:
    ops_by_entry = {id(entry): ops.ops_of_entry(names, entry) for entry in build_ops.documented}
    sources = {names.prefix + op.key for op in build_ops.ops}
    columns = list(_columns(status, key, sources))

    def row(op: ops.Op) -> OpRow:
        source = names.prefix + op.key
        cells = {column: status.verdict(CellKey(key, column.device, source, column.solution)) for column in columns}
        eager_cells = {column: variants.eager(cell) for column, cell in cells.items()}
        return OpRow(
            op,
            source,
            [entry for entry in build_ops.documented if op.key in ops_by_entry[id(entry)]],
            [symbol_with_counts(cell) for cell in eager_cells.values()],
            {column: cell.verdict for column, cell in eager_cells.items()},
            _binary(status, key, source),
            [meaning for meaning in extracted.refusal_meanings if op.key in meaning.ops],
            extracted.entries_with_alert,
            cells,
        )

    return OpComparison(key, names.solution, columns, [row(op) for op in build_ops.ops], build_ops, extracted.readings)


def _columns(status: Status, environment: str, sources: Set[str]) -> Iterator[MeasurementColumn]:
    """Yield the columns: all general solutions of the CPU, and those of measured or emulated GPUs that ran an op."""
    solutions = sorted(status.matrix.solutions.items(), key=lambda item: item[1].order)
    general = {key: solution for key, solution in solutions if solution.applies_to_all_ops}
    yield from (MeasurementColumn(CPU, key) for key, solution in general.items() if CPU in solution.devices)
    ran = {
        MeasurementColumn(key.device, key.solution)
        for key in status.verdicts
        if key.environment == environment and key.source in sources
    }
    for gpu in [*status.gpus, *status.emulated_models]:
        yield from (column for key in general if (column := MeasurementColumn(gpu, key)) in ran)
