"""What a framework's own lists say of each of its ops, beside what was measured: one row an op, one column a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tfdet.matrix import confirmed, ops
from tfdet.matrix.confirmed import Kind
from tfdet.matrix.devices import CPU
from tfdet.matrix.models import NONE
from tfdet.publish import audit_tables
from tfdet.publish.marks import with_numbers
from tfdet.verdicts.infer import CellKey, Verdict
from tfdet.verdicts.status import Status


@dataclass(frozen=True)
class Row:
    """documented: the entries that mean it.  measured: on a CPU, a mark a solution.  binary: what its kernels hold."""

    op: ops.Op
    source: str
    documented: list[ops.Entry]
    measured: list[str]
    verdicts: dict[str, Verdict]
    binary: str = ""

    @property
    def listed(self) -> bool:
        return bool(self.documented or self.op.tags or self.op.tolerance)

    @property
    def adds(self) -> bool:
        """Do its kernels of the build for CUDA, that it may reach, add floats in the order of threads?"""
        return self.binary not in ("", "0") and self.binary.removesuffix("°").isdigit()

    @property
    def told(self) -> bool:
        return (
            self.listed
            or self.adds
            or Verdict.NONDETERMINISTIC in self.verdicts.values()
            or Verdict.RAISES in self.verdicts.values()
        )

    @property
    def words(self) -> str:
        """What the documentation says: raises (CUDA, backward)."""
        return "; ".join(dict.fromkeys(_words(entry) for entry in self.documented))

    def disagreements(self, solution: str) -> Iterator[tuple[Kind, str]]:
        """Where two lists, or a list and what was measured, say different things."""
        on_cpu = [entry for entry in self.documented if CPU in entry.devices]
        if self.op.tolerance and not self.documented:
            yield (
                "tolerance",
                f"its gradient tests let two runs differ by {self.op.tolerance:g}; the documentation does not name it",
            )
        if self.op.backward and not self.op.tolerance and any(entry.backward for entry in self.documented):
            yield "gradient", "the documentation names its gradient; its gradient tests let no two runs differ"
        if self.verdicts[NONE] is Verdict.NONDETERMINISTIC and not on_cpu:
            yield "differs", "it differs on a CPU; the documentation names it for none"
        if self.verdicts[solution] is Verdict.NONDETERMINISTIC:
            yield "differs-under", f"it differs on a CPU under {solution}"
        if self.verdicts[solution] is Verdict.RAISES and not on_cpu:
            yield "raises", f"it raises on a CPU under {solution}; the documentation names it for none"
        if any(_apart(one, other) for one in self.documented for other in self.documented):
            yield (
                "documentation",
                "one entry of the documentation says that it is deterministic, another that it raises",
            )


def _apart(one: ops.Entry, other: ops.Entry) -> bool:
    """Do they say different things of the same call?"""
    same_call = not one.modes or not other.modes or set(one.modes) & set(other.modes)
    return bool(
        one.api == other.api
        and one.says != other.says
        and set(one.devices) & set(other.devices)
        and same_call
        and one.backward == other.backward
    )


def _words(entry: ops.Entry) -> str:
    where = {("cpu", "gpu"): "", ("cpu",): "CPU", ("gpu",): "CUDA"}[tuple(entry.devices)]
    more = [part for part in (where, "backward" if entry.backward else "", *entry.modes) if part]
    return entry.says + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True)
class Disagreement:
    """read: what PyTorch's sources say of it, by people; empty where nobody looked.  places: (file:line, address)."""

    row: Row
    text: str
    read: str
    places: list[tuple[str, str]]


@dataclass(frozen=True)
class Join:
    """Of one environment."""

    environment: str
    solution: str
    solutions: list[str]
    rows: list[Row] = field(repr=False)
    ops: ops.Ops = field(repr=False)
    readings: confirmed.Readings = field(repr=False)

    @cached_property
    def told(self) -> list[Row]:
        return [row for row in self.rows if row.told]

    @cached_property
    def disagreements(self) -> list[Disagreement]:
        return [self._read(row, *found) for row in self.rows for found in row.disagreements(self.solution)]

    @property
    def unread(self) -> list[str]:
        """The ops with a disagreement of which nobody looked into the sources."""
        return [found.row.op.key for found in self.disagreements if not found.read]

    def _read(self, row: Row, kind: Kind, text: str) -> Disagreement:
        known = self.ops.lines
        found = confirmed.reading(self.readings, known, row.op.key, kind)
        if found is None:
            return Disagreement(row, text, "", [])
        root = f"{self.readings.repository}/blob/{self.ops.commit}"
        places = [(place.file, known[place.key]) for place in found.places if place.key in known]
        shown = [(f"{file}:{line}", f"{root}/{file}#L{line}") for file, line in places]
        release = self.readings.release
        root = f"{self.readings.repository}/blob/{release}"
        shown += [(f"{c.file}:{c.line} ({release})", f"{root}/{c.file}#L{c.line}") for c in found.code]
        return Disagreement(row, text, found.finding, shown)

    @cached_property
    def coverage(self) -> list[tuple[str, int]]:
        """Of the ops that have samples: how many ran, and why the others did not."""
        return Counter(_why(row) for row in self.rows).most_common()

    @property
    def tagged(self) -> int:
        return sum("nondeterministic_bitwise" in row.op.tags for row in self.rows)


def _binary(status: Status, environment: str, source: str) -> str:
    """The number of order-dependent kernels, or what else the audit of that build found."""
    known = status.matrix.sources.get(source)
    if environment not in status.audits or known is None or known.audit is None:
        return ""
    return audit_tables.held(status.finding(environment, source)) or "not seen"


def _why(row: Row) -> str:
    if not row.op.samples:
        return "no samples in the dtypes that are tried"
    verdict = row.verdicts[NONE]
    if verdict is Verdict.BLANK:
        return "not run yet"
    return {Verdict.UNSUPPORTED: "unsupported on a CPU", Verdict.FAILED: "failed", Verdict.STALE: "stale"}.get(
        verdict, "ran"
    )


def joins(folder: Path, status: Status, framework: str) -> list[Join]:
    """folder: matrix/."""
    readings = confirmed.load(folder, framework)
    names, status = ops.load_names(folder, framework), replace(status, matrix=status.matrix.of(framework))
    if names is None:
        return []
    return [_join(status, names, readings, key, some) for key, some in _in_order(ops.load_ops(folder, framework))]


def _in_order(found: dict[str, ops.Ops]) -> list[tuple[str, ops.Ops]]:
    """torch2.4 before torch2.13."""
    return sorted(found.items(), key=lambda item: [int(part) for part in item[1].framework_version.split(".")[:2]])


def _join(status: Status, names: ops.Names, readings: confirmed.Readings, key: str, some: ops.Ops) -> Join:
    meant = {id(entry): ops.meant(names, entry) for entry in some.documented}
    solutions = [s for s, solution in status.matrix.solutions.items() if solution.general and CPU in solution.devices]
    solutions.sort(key=lambda s: status.matrix.solutions[s].order)

    def row(op: ops.Op) -> Row:
        source = names.prefix + op.key
        cells = {s: status.verdict(CellKey(key, CPU, source, s)) for s in solutions}
        return Row(
            op,
            source,
            [entry for entry in some.documented if op.key in meant[id(entry)]],
            [with_numbers(cell) for cell in cells.values()],
            {s: cell.verdict for s, cell in cells.items()},
            _binary(status, key, source),
        )

    return Join(key, names.solution, solutions, [row(op) for op in some.ops], some, readings)
