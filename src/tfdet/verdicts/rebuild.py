"""Cells of others, run again here: which to choose, and do they agree?  (As rebuilders of reproducible builds.)"""

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
        """Agrees: of a case that both saw the same observation of; a verdict alone may rest on different ones.

        Undecided: what was seen here neither says the same nor contradicts it, as where a control did not differ.
        """
        if self.reproduced.verdict is self.recorded.verdict:
            return "agrees" if self.cases else "undecided"
        return "disagrees" if {self.reproduced.verdict, self.recorded.verdict} in CONFLICTING_VERDICTS else "undecided"

    @property
    def cases(self) -> list[str]:
        """That both rest on, if they say the same."""
        same = self.reproduced.verdict is self.recorded.verdict
        return sorted(self.reproduced.deciding_cases & self.recorded.deciding_cases) if same else []

    def as_json(self) -> dict[str, Any]:
        told = {"theirs": str(self.recorded.verdict), "ours": str(self.reproduced.verdict)}
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
    """What could be run again here: no machine but others had a hand in it.  word: as `--device` has it."""
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
    """The same of the same for one seed; at least one."""
    number = max(1, round(len(among) * share))
    return sorted(random.Random(seed).sample(among, min(number, len(among))))


def by_run(chosen: Iterable[CellKey]) -> Mapping[tuple[str, str], list[str]]:
    """{(environment, solution): sources}: what one run of the suite can take together."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in chosen:
        found[key.environment, key.solution].append(key.source)
    return found


def compare(status: Status, again: Status, chosen: Iterable[CellKey]) -> list[RebuildResult]:
    """`again` may be of another model of that kind of device, or of none."""
    return [RebuildResult(key, status.verdict(key), again.verdict(key)) for key in chosen]
