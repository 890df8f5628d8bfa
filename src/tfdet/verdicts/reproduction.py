"""Choose cells that other machines measured, to run them again here, and compare the verdicts (reproduction).

A cell is one environment, device, source of nondeterminism and solution. Its control is the same without a solution.
A Status holds the verdicts of all cells.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfdet.matrix.load import Matrix
from tfdet.matrix.plan import plan_cells
from tfdet.store.records import Record
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status import CONFLICTING_VERDICTS, Status

Answer = Literal["agrees", "disagrees", "undecided"]


@dataclass(frozen=True)
class ReproducedCell:
    """A cell as recorded by others, and as reproduced here."""

    key: CellKey
    recorded: InferredCell
    reproduced: InferredCell

    @property
    def answer(self) -> Answer:
        """Agrees: the verdicts are equal and rest on at least one common case.

        A verdict rests on the cases, the runnable forms of the source, that decide it.
        Undecided: this result neither confirms nor contradicts the recorded one, as when a control did not differ.
        """
        if self.reproduced.verdict is self.recorded.verdict:
            return "agrees" if self.cases else "undecided"
        return "disagrees" if {self.reproduced.verdict, self.recorded.verdict} in CONFLICTING_VERDICTS else "undecided"

    @property
    def cases(self) -> list[str]:
        """The cases on which both verdicts rest; empty if the verdicts are not equal."""
        same = self.reproduced.verdict is self.recorded.verdict
        return sorted(self.reproduced.deciding_cases & self.recorded.deciding_cases) if same else []

    def as_json(self) -> dict[str, Any]:
        verdicts = {"recorded": str(self.recorded.verdict), "reproduced": str(self.reproduced.verdict)}
        return {
            **self.key._asdict(),
            **verdicts,
            "runs": self.reproduced.runs,
            "differed": self.reproduced.differed,
            "answer": self.answer,
            "cases": self.cases,
        }


def reproducible_cells(
    status: Status, records: Iterable[Record], machine: str, device: str, environments: Collection[str]
) -> list[CellKey]:
    """Return the cells that only other machines have run and that can run here.  device: the value of `--device`."""
    machines: dict[CellKey, set[str]] = defaultdict(set)
    for record in records:
        machines[CellKey(record.environment, record.device.model, record.source, record.solution)].add(record.machine)
    runnable = {key: set(_runnable(status.matrix, key, device)) for key in environments}
    without_result = (Verdict.BLANK, Verdict.STALE, Verdict.FAILED, Verdict.UNSUPPORTED)
    return sorted(
        key
        for key, ran_on in machines.items()
        if machine not in ran_on
        and (key.source, key.solution) in runnable.get(key.environment, ())
        and (kind := status.matrix.devices.kind(key.device))
        and kind.cli_name == device
        and status.verdict(key).verdict not in without_result
    )


def _runnable(matrix: Matrix, environment: str, device: str) -> Iterator[tuple[str, str]]:
    return (
        (cell.source, cell.solution)
        for cell in plan_cells(matrix, environment)
        if cell.device == device and cell.reason is None
    )


def draw_sample(cells: list[CellKey], share: float, seed: int) -> list[CellKey]:
    """Draw at least one cell; the same seed draws the same cells."""
    count = max(1, round(len(cells) * share))
    return sorted(random.Random(seed).sample(cells, min(count, len(cells))))


def group_by_run(cells: Iterable[CellKey]) -> Mapping[tuple[str, str], list[str]]:
    """Group cells that one run of the suite can cover: {(environment, solution): sources}."""
    sources: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in cells:
        sources[key.environment, key.solution].append(key.source)
    return sources


def compare(status: Status, reproduced: Status, cells: Iterable[CellKey]) -> list[ReproducedCell]:
    """Compare cells of a status with those of the new run, whose device may be another model of the same kind."""
    return [ReproducedCell(key, status.verdict(key), reproduced.verdict(key)) for key in cells]
