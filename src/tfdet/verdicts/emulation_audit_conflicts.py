"""Conflicts between emulation and audit of a build: one finds an op nondeterministic, the other does not.

Emulation runs ops on the virtual GPU, an emulator; an audit reads the binaries.  A cell is one environment, device,
source of nondeterminism and solution; NONE is the solution that does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfdet.matrix import ranges
from tfdet.matrix.models import NONE
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status, StatusCell


class EmulationAuditConflict(NamedTuple):
    """A conflict between the emulation and the audit of one source in one environment.

    why: the explanation in the source's file; empty if there is none.
    """

    source: str
    environment: str
    emulated: str
    audited: str
    why: str


def find_conflicts(status: Status) -> Iterator[EmulationAuditConflict]:
    """Yield the cells that differed although the audit found no reachable order-dependent atomics, and the reverse.

    If it is unchecked whether the op reaches such atomics, an op that differs is not a conflict.  Conflicts with
    documents are found by `Status.contradictions`.
    """
    for cell in status.cells:
        if cell.evidence_kind == "emulated" and cell.key.solution == NONE and _is_conflict(cell):
            yield _conflict(status, cell)


def _is_conflict(cell: StatusCell) -> bool:
    if cell.finding is None:
        return False
    if cell.inferred.verdict is Verdict.NONDETERMINISTIC:
        return not (cell.finding.shows_order_dependence or cell.finding.has_unknown_reach)
    return cell.inferred.verdict is Verdict.NOT_SHOWN and cell.finding.shows_order_dependence


def _conflict(status: Status, cell: StatusCell) -> EmulationAuditConflict:
    finding, source = cell.finding, status.matrix.source(cell.key.source)
    assert finding is not None  # `_is_conflict` requires one
    version = status.matrix.environment(cell.key.environment).version
    # Notes of the source's file on its emulation, each for a range of versions of stock builds.
    why = next((note.note for note in source.emulation if ranges.contains(note.stock, version)), "")
    return EmulationAuditConflict(cell.key.source, cell.key.environment, str(cell.inferred.verdict), finding.text, why)
