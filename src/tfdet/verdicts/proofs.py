"""The proofs of a cell's cases: which cases are proved, why others are not, and which proofs are contradicted.

A case is proved if no order of execution on the virtual GPU gives other bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tfdet.store.fast_records import DEFAULT_AXES, Axes, Proof
from tfdet_common import virtual_gpu

# {a field of Axes: its name in a cell}
_AXES = {virtual_gpu.MULTIPROCESSORS: "device-size", virtual_gpu.PLACEMENT: "placement"}


class TriedProof(NamedTuple):
    """A proof that was tried, and the run that it is about.

    axes: the device's number of multiprocessors, and its placement (seed of the addresses of allocations).
    digests: of the outputs.  virtual_gpu_digest: of its source code.
    """

    proof: Proof
    axes: Axes = DEFAULT_AXES
    digests: tuple[str, ...] = ()
    virtual_gpu_digest: str = ""


class CaseProof(NamedTuple):
    """All proofs of one case; a single successful one suffices for each number of multiprocessors and placement.

    differed_with: the numbers of multiprocessors and placements with which a run of the case differed.
    """

    tried: tuple[TriedProof, ...]
    differed_with: frozenset[Axes]

    @property
    def proved(self) -> list[TriedProof]:
        """The successful proofs; none if the case is not proved on some device."""
        successful = [tried for tried in self.tried if tried.proof.is_proved]
        is_proved_everywhere = {tried.axes for tried in self.tried} == {tried.axes for tried in successful}
        return successful if is_proved_everywhere else []

    @property
    def is_contradicted(self) -> bool:
        """Whether the case differed on a device on which it is proved."""
        return any(tried.proof.is_proved and tried.axes in self.differed_with for tried in self.tried)

    @property
    def failed(self) -> list[Proof]:
        """The proofs that were tried on devices on which none succeeded."""
        devices = {tried.axes for tried in self.tried if tried.proof.is_proved}
        return [tried.proof for tried in self.tried if tried.axes not in devices]


class AxisComparison(NamedTuple):
    """Numbers of multiprocessors, or placements, with which a cell gave the same bytes as with the default, or others.

    A number is in neither if the bytes could not be compared: the runs are of other states of the virtual GPU.
    """

    same: tuple[int, ...] = ()
    other: tuple[int, ...] = ()

    def as_json(self) -> dict[str, list[int]]:
        return {"same": list(self.same), "other": list(self.other)}


@dataclass(frozen=True)
class CellProof:
    """The combined result of the proofs of a cell's cases.

    Attributes:
        cases: number of cases that ran, with or without a proof.
        proved: number of cases for which no order of execution gives other bytes.
        tried: number of cases for which a proof was tried, successful or not.
        axes: what may vary without a change of the bytes: what all successful proofs left open, and `device-size` and
            `placement` if other values of these were tried for all proved cases, and gave the same bytes.
        compared: {`multiprocessors` or `placement`: the values that were tried}; without those that were not tried.
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
    compared: dict[str, AxisComparison] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every case that ran is proved, and none is contradicted."""
        return 0 < self.proved == self.cases and not self.contradicted

    def as_json(self) -> dict[str, Any]:
        return {"cases": self.cases, "proved": self.proved, "tried": self.tried, "axes": list(self.axes),
                "holds_for": self.holds_for, "reasons": self.reasons,
                "contradicted": list(self.contradicted),
                "compared": {name: comparison.as_json() for name, comparison in self.compared.items()}}  # fmt: skip


def gather(cases: dict[str, CaseProof]) -> CellProof | None:
    """Combine the proofs of the cases that ran, by their names; return None if no proof was tried."""
    tried = {name: case for name, case in cases.items() if case.tried}
    if not tried:
        return None
    proved = {name: case.proved for name, case in tried.items() if case.proved}
    reasons: dict[str, int] = {}
    for name in sorted(tried.keys() - proved.keys()):
        for reason in sorted(frozenset[str]().union(*(proof.reasons for proof in tried[name].failed))):
            reasons[reason] = reasons.get(reason, 0) + 1
    axes, holds_for = _scope(tried_proof.proof for group in proved.values() for tried_proof in group)
    contradicted = tuple(sorted(name for name, case in tried.items() if case.is_contradicted))
    compared = dict(_compare(list(proved.values())))
    same = [_AXES[name] for name, values in compared.items() if values.same and not values.other]
    axes += tuple(axis for axis in same if axis not in axes)
    return CellProof(
        len(cases), len(proved), len(tried), axes, holds_for, reasons, contradicted, frozenset(proved), compared
    )


def _scope(proofs: Iterable[Proof]) -> tuple[tuple[str, ...], str]:
    """Return (the axes that all proofs left open, what all of them hold for)."""
    proof_list = list(proofs)
    if not proof_list:
        return (), ""
    axes = [axis for axis in proof_list[0].axes if all(axis in proof.axes for proof in proof_list)]
    return tuple(axes), "shape" if all(proof.holds_for == "shape" for proof in proof_list) else "input"


def _compare(cases: Sequence[Sequence[TriedProof]]) -> Iterator[tuple[str, AxisComparison]]:
    """Yield (axis, its comparison) for the axes of which another value than the default was tried.

    A value has the same bytes if it has in all cases, and other bytes if it has in one.
    """
    for name in _AXES:
        by_case = [_compare_case(case, name) for case in cases]
        values = set().union(*by_case)
        same = [value for value in sorted(values) if all(found.get(value) is True for found in by_case)]
        other = [value for value in sorted(values) if any(found.get(value) is False for found in by_case)]
        if values:
            yield name, AxisComparison(tuple(same), tuple(other))


def _compare_case(case: Sequence[TriedProof], name: str) -> dict[int, bool | None]:
    """Return {value of an axis: whether the bytes are those of the default; None if they cannot be compared}.

    Equal bytes are equal whatever computed them; other bytes count only from the same state of the virtual GPU.
    """
    defaults = [tried for tried in case if tried.axes == DEFAULT_AXES]
    found: dict[int, bool | None] = {}
    for tried in case:
        value = getattr(tried.axes, name)
        if value is None or tried.axes._replace(**{name: None}) != DEFAULT_AXES:
            continue
        if any(tried.digests == default.digests for default in defaults):
            found[value] = True
        elif any(tried.virtual_gpu_digest == default.virtual_gpu_digest for default in defaults):
            found.setdefault(value, False)
        else:
            found.setdefault(value, None)
    return found
