"""What a framework's own lists say of each of its ops, beside what was measured: one row an op, one column a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tfdet.matrix import ops
from tfdet.matrix.devices import CPU
from tfdet.matrix.models import NONE
from tfdet.publish.marks import with_numbers
from tfdet.verdicts.infer import CellKey, Verdict
from tfdet.verdicts.status import Status


@dataclass(frozen=True)
class Row:
    """documented: the entries that mean it.  measured: on a CPU, a mark a solution."""

    op: ops.Op
    source: str
    documented: list[ops.Entry]
    measured: list[str]
    verdicts: dict[str, Verdict]

    @property
    def listed(self) -> bool:
        return bool(self.documented or self.op.tags or self.op.tolerance)

    @property
    def told(self) -> bool:
        return (
            self.listed
            or Verdict.NONDETERMINISTIC in self.verdicts.values()
            or Verdict.RAISES in self.verdicts.values()
        )

    @property
    def words(self) -> str:
        """What the documentation says: raises (CUDA, backward)."""
        return "; ".join(dict.fromkeys(_words(entry) for entry in self.documented))

    def disagreements(self, solution: str) -> Iterator[str]:
        """Where two lists, or a list and what was measured, say different things."""
        on_cpu = [entry for entry in self.documented if CPU in entry.devices]
        if self.op.tolerance and not self.documented:
            yield f"its gradient tests let two runs differ by {self.op.tolerance:g}; the documentation does not name it"
        if self.op.backward and not self.op.tolerance and any(entry.backward for entry in self.documented):
            yield "the documentation names its gradient; its gradient tests let no two runs differ"
        if self.verdicts[NONE] is Verdict.NONDETERMINISTIC and not on_cpu:
            yield "it differs on a CPU; the documentation names it for none"
        if self.verdicts[solution] is Verdict.NONDETERMINISTIC:
            yield f"it differs on a CPU under {solution}"
        if self.verdicts[solution] is Verdict.RAISES and not on_cpu:
            yield f"it raises on a CPU under {solution}; the documentation names it for none"


def _words(entry: ops.Entry) -> str:
    where = {("cpu", "gpu"): "", ("cpu",): "CPU", ("gpu",): "CUDA"}[tuple(entry.devices)]
    more = [part for part in (where, "backward" if entry.backward else "", *entry.modes) if part]
    return entry.says + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True)
class Join:
    """Of one environment."""

    environment: str
    solution: str
    solutions: list[str]
    rows: list[Row] = field(repr=False)

    @cached_property
    def told(self) -> list[Row]:
        return [row for row in self.rows if row.told]

    @cached_property
    def disagreements(self) -> list[tuple[Row, str]]:
        return [(row, text) for row in self.rows for text in row.disagreements(self.solution)]

    @cached_property
    def coverage(self) -> list[tuple[str, int]]:
        """Of the ops that have samples: how many ran, and why the others did not."""
        return Counter(_why(row) for row in self.rows).most_common()

    @property
    def tagged(self) -> int:
        return sum("nondeterministic_bitwise" in row.op.tags for row in self.rows)


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
    names, status = ops.load_names(folder, framework), replace(status, matrix=status.matrix.of(framework))
    return [_join(status, names, key, some) for key, some in ops.load_ops(folder, framework).items()] if names else []


def _join(status: Status, names: ops.Names, key: str, some: ops.Ops) -> Join:
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
        )

    return Join(key, names.solution, solutions, [row(op) for op in some.ops])
