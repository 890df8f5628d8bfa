"""Choose cells that others measured, run them again here, and compare the verdicts (as rebuilders do)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfdet.matrix.load import Matrix
from tfdet.matrix.plan import plan_cells as planned
from tfdet.store.records import Record
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status import CONFLICTING_VERDICTS, Status

Answer = Literal["agrees", "disagrees", "undecided"]


@dataclass(frozen=True)
class RebuildResult:
    """A cell as recorded by others, and as reproduced here."""

    key: CellKey
    recorded: InferredCell
    reproduced: InferredCell

    @property
    def answer(self) -> Answer:
        """Agrees: the verdicts are equal and rest on at least one common case.

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
        told = {"recorded": str(self.recorded.verdict), "reproduced": str(self.reproduced.verdict)}
        return {
            **self.key._asdict(),
            **told,
            "runs": self.reproduced.runs,
            "differed": self.reproduced.differed,
            "answer": self.answer,
            "cases": self.cases,
        }


def rebuild_candidates(
    status: Status, records: Iterable[Record], machine: str, word: str, environments: Collection[str]
) -> list[CellKey]:
    """Cells that only other machines have run and that can run here.  word: the value of `--device`."""
    machines: dict[CellKey, set[str]] = defaultdict(set)
    for r in records:
        machines[CellKey(r.environment, r.device.model, r.source, r.solution)].add(r.machine)
    runnable = {key: set(_runnable(status.matrix, key, word)) for key in environments}
    silent = (Verdict.BLANK, Verdict.STALE, Verdict.FAILED, Verdict.UNSUPPORTED)
    return sorted(
        key
        for key, seen in machines.items()
        if machine not in seen
        and (key.source, key.solution) in runnable.get(key.environment, ())
        and (kind := status.matrix.devices.kind(key.device))
        and kind.cli_name == word
        and status.verdict(key).verdict not in silent
    )


def _runnable(matrix: Matrix, environment: str, word: str) -> Iterator[tuple[str, str]]:
    return ((c.source, c.solution) for c in planned(matrix, environment) if c.device == word and c.reason is None)


def draw_sample(among: list[CellKey], share: float, seed: int) -> list[CellKey]:
    """Draw at least one cell; the same seed draws the same cells."""
    number = max(1, round(len(among) * share))
    return sorted(random.Random(seed).sample(among, min(number, len(among))))


def by_run(chosen: Iterable[CellKey]) -> Mapping[tuple[str, str], list[str]]:
    """{(environment, solution): sources}: cells that one run of the suite can cover."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in chosen:
        found[key.environment, key.solution].append(key.source)
    return found


def compare(status: Status, again: Status, chosen: Iterable[CellKey]) -> list[RebuildResult]:
    """again: the status of the new run; its device may be another model of the same kind."""
    return [RebuildResult(key, status.verdict(key), again.verdict(key)) for key in chosen]
