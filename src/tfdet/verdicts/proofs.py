"""The proofs of a cell's cases: which cases are proved, why others are not, and which proofs are contradicted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tfdet.store.fast_records import Proof


class CaseProof(NamedTuple):
    """All proofs of one case; a single successful one suffices.

    differed: whether any run of the case differed.
    """

    proofs: tuple[Proof, ...]
    differed: bool

    @property
    def proved(self) -> list[Proof]:
        return [proof for proof in self.proofs if proof.is_proved]


@dataclass(frozen=True)
class CellProof:
    """The combined result of the proofs of a cell's cases.

    Attributes:
        cases: number of cases that ran, with or without a proof.
        proved: number of cases for which no order of execution gives other bytes.
        tried: number of cases for which a proof was tried, successful or not.
        axes: what all successful proofs left open.
        holds_for: `shape` if they hold for every input of the cases' shapes, else `input`.
        reasons: {reason why a case is not proved: number of cases}.
        contradicted: names of cases that are proved, but differed: the prover or a record is wrong.
        proved_cases: names of the cases that are proved.
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
        """Whether every case that ran is proved, and none is contradicted."""
        return 0 < self.proved == self.cases and not self.contradicted

    def as_json(self) -> dict[str, Any]:
        return {"cases": self.cases, "proved": self.proved, "tried": self.tried, "axes": list(self.axes),
                "holds_for": self.holds_for, "reasons": self.reasons,
                "contradicted": list(self.contradicted)}  # fmt: skip


def gather(cases: dict[str, CaseProof]) -> CellProof | None:
    """Combine the proofs of the cases that ran, by their names; return None if no proof was tried."""
    tried = {name: case for name, case in cases.items() if case.proofs}
    if not tried:
        return None
    proved = {name: case.proved for name, case in tried.items() if case.proved}
    reasons: dict[str, int] = {}
    for name in sorted(tried.keys() - proved.keys()):
        for reason in sorted(frozenset[str]().union(*(proof.reasons for proof in tried[name].proofs))):
            reasons[reason] = reasons.get(reason, 0) + 1
    axes, holds_for = _scope(proof for proofs in proved.values() for proof in proofs)
    contradicted = tuple(sorted(name for name in proved if cases[name].differed))
    return CellProof(len(cases), len(proved), len(tried), axes, holds_for, reasons, contradicted, frozenset(proved))


def _scope(proofs: Iterable[Proof]) -> tuple[tuple[str, ...], str]:
    """Return (the axes that all proofs left open, what all of them hold for)."""
    proof_list = list(proofs)
    if not proof_list:
        return (), ""
    axes = [axis for axis in proof_list[0].axes if all(axis in proof.axes for proof in proof_list)]
    return tuple(axes), "shape" if all(proof.holds_for == "shape" for proof in proof_list) else "input"
