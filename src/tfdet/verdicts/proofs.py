"""Proofs of the cases of a cell: which are proved, which are not and why, and which the evidence contradicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tfdet.store.fast_records import Proof


class CaseProof(NamedTuple):
    """All proofs that records have of one case.  Each one that succeeds stands by itself: one run suffices.

    differed: whether any run of the case was seen to differ.
    """

    proofs: tuple[Proof, ...]
    differed: bool

    @property
    def proved(self) -> list[Proof]:
        return [one for one in self.proofs if one.is_proved]


@dataclass(frozen=True)
class CellProof:
    """What the proofs of a cell's cases show together.

    Attributes:
        cases: that ran, those without a proof among them.
        proved: of them, those of which no order of execution gives other bytes.
        tried: of them, those that have a proof, be it that it failed.
        axes: what all of the proofs that succeeded left open.
        holds_for: `shape` if they hold for every input of the cases' shapes, else `input`.
        reasons: why the others are not proved, and of how many cases each reason is.
        contradicted: cases that are proved, and yet were seen to differ: the prover or the record is wrong.
        proved_cases: the names of those that are proved.
    """

    cases: int
    proved: int = 0
    tried: int = 0
    axes: tuple[str, ...] = ()
    holds_for: str = ""
    reasons: dict[str, int] = field(default_factory=dict)
    contradicted: tuple[str, ...] = ()
    proved_cases: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def is_whole(self) -> bool:
        """Is every case that ran proved, and none contradicted?"""
        return 0 < self.proved == self.cases and not self.contradicted

    def as_json(self) -> dict[str, Any]:
        return {"cases": self.cases, "proved": self.proved, "tried": self.tried, "axes": list(self.axes),
                "holds_for": self.holds_for, "reasons": self.reasons,
                "contradicted": list(self.contradicted)}  # fmt: skip


def gather(cases: dict[str, CaseProof]) -> CellProof | None:
    """Of the cases that ran, by their names; None where no proof was tried."""
    tried = {name: case for name, case in cases.items() if case.proofs}
    if not tried:
        return None
    proved = {name: case.proved for name, case in tried.items() if case.proved}
    reasons: dict[str, int] = {}
    for name in sorted(tried.keys() - proved.keys()):
        for reason in sorted(frozenset[str]().union(*(one.reasons for one in tried[name].proofs))):
            reasons[reason] = reasons.get(reason, 0) + 1
    axes, holds_for = _scope(found for some in proved.values() for found in some)
    contradicted = tuple(sorted(name for name in proved if cases[name].differed))
    return CellProof(len(cases), len(proved), len(tried), axes, holds_for, reasons, contradicted, frozenset(proved))


def _scope(found: Iterable[Proof]) -> tuple[tuple[str, ...], str]:
    """The axes that all of them left open, and what all of them hold for."""
    some = list(found)
    if not some:
        return (), ""
    axes = [axis for axis in some[0].axes if all(axis in one.axes for one in some)]
    return tuple(axes), "shape" if all(one.holds_for == "shape" for one in some) else "input"
