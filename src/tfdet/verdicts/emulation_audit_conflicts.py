"""Where the emulation and the audit of a build say different things of an op by itself, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfdet.matrix import ranges
from tfdet.matrix.models import NONE
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status, StatusCell


class EmulationAuditConflict(NamedTuple):
    """why: by the source's file; empty where nobody has explained it."""

    source: str
    environment: str
    emulated: str
    audited: str
    why: str


def find_conflicts(status: Status) -> Iterator[EmulationAuditConflict]:
    """It differed, and the audit found no order-dependent atomics that the op reaches; or the other way round.

    Where nobody has looked whether the op reaches them, an op that differed is the answer, and no disagreement.  What a
    document says is no party here: `Status.contradictions`.
    """
    for cell in status.cells:
        if cell.evidence_kind == "emulated" and cell.key.solution == NONE and _is_conflict(cell):
            yield _conflict(status, cell)


def _is_conflict(cell: StatusCell) -> bool:
    if cell.finding is None:
        return False
    if cell.cell.verdict is Verdict.NONDETERMINISTIC:
        return not (cell.finding.is_conclusive or cell.finding.is_unchecked)
    return cell.cell.verdict is Verdict.NOT_SHOWN and cell.finding.is_conclusive


def _conflict(status: Status, cell: StatusCell) -> EmulationAuditConflict:
    finding, source = cell.finding, status.matrix.source(cell.key.source)
    assert finding is not None  # else there is nothing to be apart from
    version = status.matrix.environment(cell.key.environment).version
    why = next((note.note for note in source.emulation if ranges.contains(note.stock, version)), "")
    return EmulationAuditConflict(cell.key.source, cell.key.environment, str(cell.cell.verdict), finding.text, why)
