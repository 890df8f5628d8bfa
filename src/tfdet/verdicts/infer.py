"""Infer the verdict of a cell (environment, device, source, solution) from the records of its source's cases.

A case is one runnable form of a source of nondeterminism; a solution is what makes the source deterministic.

All functions are pure, and no verdict says more than the evidence shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from statistics import median
from sys import intern
from typing import NamedTuple, get_args

from tfdet.matrix.models import NONE
from tfdet.store.fast_records import DEFAULT_AXES, Axes, RecordSummary
from tfdet.store.records import Observation
from tfdet.verdicts.agreement import Agreement, CaseResult, count_agreeing, find_agreements
from tfdet.verdicts.proofs import CaseProof, CellProof, TriedProof, gather
from tfdet.verdicts.variants import EAGER, FIRST_DTYPE_LABEL, variants_of

MIN_RUNS = 20  # equal runs; after fewer, the chance that the next run differs can be more than 14 %


class Verdict(StrEnum):
    """What the records of a cell show.  A control is the same case without the solution, on the same machine."""

    NONDETERMINISTIC = "nondeterministic"  # a run differed
    SCHEDULE_INDEPENDENT = "schedule-independent"  # proved: no order of execution gives other bytes
    DETERMINISTIC = "deterministic"  # enough equal runs of cases whose control differed
    TOO_FEW = "too few runs"  # fewer than MIN_RUNS equal runs of such cases
    NOT_SHOWN = "not shown to differ"  # all runs were equal, and no control differed
    RAISES = "raises"  # the framework refuses to run the op nondeterministically
    UNSUPPORTED = "unsupported"  # the framework has no such op, kernel or call here
    FAILED = "failed"  # a case crashed or timed out
    STALE = "stale"  # all records are of earlier versions of the cases
    BLANK = ""  # there are no records


# The verdicts of cells whose runs were all equal.
NO_DIFFERENCE_VERDICTS = (Verdict.SCHEDULE_INDEPENDENT, Verdict.DETERMINISTIC, Verdict.TOO_FEW, Verdict.NOT_SHOWN)

_BIT = {name: 1 << number for number, name in enumerate(get_args(Observation))}
_DIFFERS, _UNSUPPORTED = _BIT["differs"], _BIT["unsupported"]
_INCOMPLETE = _BIT["crashed"] | _BIT["timed-out"]
_COMPLETED = _BIT["equal"] | _BIT["differs"] | _BIT["raises"]


class SignerVerdict(NamedTuple):
    """The verdict of one signer's records alone.  machines: those on which the records were made."""

    signer: str
    verdict: Verdict
    runs: int
    differed: int
    machines: frozenset[str]

    def as_json(self) -> dict[str, object]:
        return {**self._asdict(), "verdict": str(self.verdict), "machines": sorted(self.machines)}


class CellKey(NamedTuple):
    environment: str
    device: str
    source: str
    solution: str


@dataclass(frozen=True)
class InferredCell:
    """The verdict on one cell, with the numbers behind it.

    runs, differed: over the cases that the verdict depends on (for `deterministic` and `too few runs`:
    those whose own control differed).  bound95: upper 95 % bound on the probability that a run differs,
    None if a run differed.
    controls_differed: cases whose own control differed, of the `cases` that ran (a case counts once for each machine).
    machines: the number of machines that the verdict depends on.  agreeing_machines: how many of them reach the verdict
    alone, on a case on which another machine reaches it, too; a single machine agrees with itself.
    deciding_cases: the names of the cases that the verdict depends on.
    by_signer: the verdict of each signer's records; empty if the records are unsigned.
    agreements: those between signers with this verdict.
    variants: for an op that runs in several dtypes, or compiled, the cell of each variant that ran, by its name (see
    verdicts.variants).  The verdict says nothing about other variants.
    proof: the proofs of its cases on the virtual GPU; None if none was tried.
    """

    verdict: Verdict
    runs: int = 0
    differed: int = 0
    controls_differed: int = 0
    cases: int = 0
    time_ratio: float | None = None
    machines: int = 0
    agreeing_machines: int = 0
    by_signer: tuple[SignerVerdict, ...] = ()
    agreements: tuple[Agreement, ...] = ()
    variants: Mapping[str, InferredCell] = field(default_factory=dict)
    proof: CellProof | None = None
    deciding_cases: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def signed(self) -> bool:
        return bool(self.by_signer)

    @property
    def signers(self) -> list[SignerVerdict]:
        """The signers whose records alone give the same verdict."""
        return [signer for signer in self.by_signer if signer.verdict is self.verdict]

    @property
    def agreeing_signers(self) -> list[str]:
        """The names of the signers that agree with another signer on the same case."""
        return sorted({name for agreement in self.agreements for name in agreement.signers})

    @property
    def signers_conflict(self) -> bool:
        """Whether signers have different verdicts; a signer whose records only show that it did not run is ignored."""
        ignored = (Verdict.STALE, Verdict.UNSUPPORTED, Verdict.FAILED)
        verdicts = {signer.verdict for signer in self.by_signer if signer.verdict not in ignored}
        without_difference = verdicts.intersection(NO_DIFFERENCE_VERDICTS)
        if without_difference != {Verdict.SCHEDULE_INDEPENDENT}:  # runs without a difference agree with a proof
            verdicts.discard(Verdict.SCHEDULE_INDEPENDENT)
        return len(verdicts) > 1

    @property
    def verified(self) -> bool:
        """Whether two signers agree on the same case, each with different machines, and no signer contradicts them."""
        return bool(self.agreements) and not self.signers_conflict

    @property
    def is_shown_deterministic(self) -> bool:
        """Whether the solution removed a difference; a proof alone does not show that, as the control may be proved."""
        if self.verdict is Verdict.SCHEDULE_INDEPENDENT:
            return self.controls_differed > 0
        return self.verdict is Verdict.DETERMINISTIC

    @property
    def bound95(self) -> float | None:
        if self.verdict not in (Verdict.DETERMINISTIC, Verdict.TOO_FEW, Verdict.NOT_SHOWN) or not self.runs:
            return None
        return bound95(self.runs)


def bound95(runs: int) -> float:
    """Return the upper 95 % bound on the probability of an event that did not occur in `runs` independent runs."""
    return float(1.0 - 0.05 ** (1.0 / runs))


_Key = tuple[str, str, str, str]  # equal to a CellKey of the same values, but faster to create
_Place = tuple[str, str, str]  # case, machine, signer: evidence of one says nothing about another
_MACHINE, _SIGNER = 1, 2  # indices into a _Place


class _Case:
    """All current records of one case under one solution, of one machine and signer.  There may be a million."""

    __slots__ = ("differed", "differed_with", "digests", "observed", "proofs", "runs", "seconds")

    def __init__(self) -> None:
        self.observed = 0  # a bit for each observation that occurred
        self.runs = 0
        self.differed = 0
        self.seconds: float | list[float] | None = None
        self.digests: tuple[str, ...] = ()  # of signed records
        self.proofs: tuple[TriedProof, ...] = ()
        self.differed_with: frozenset[Axes] = frozenset()  # those of the virtual GPU in records that differ

    def add(self, record: RecordSummary) -> None:
        axes = record.device.axes
        self.observed |= _BIT[record.observation]
        self.runs += record.runs
        self.differed += record.differed
        if _BIT[record.observation] & _DIFFERS:
            self.differed_with |= {axes}
        if record.proof:
            self.proofs += (TriedProof(record.proof, axes, tuple(map(intern, record.digests)), record.device.sources),)
        if axes != DEFAULT_AXES:
            return  # another device takes another time
        if self.seconds is None:
            self.seconds = record.seconds
        elif record.seconds is not None:
            earlier = self.seconds if isinstance(self.seconds, list) else [self.seconds]
            self.seconds = [*earlier, record.seconds]


class EvidenceIndex:
    """Collects records by cell and case, and infers the cell of a key."""

    def __init__(self, current_hashes: Mapping[str, set[str]]) -> None:
        self._hashes = current_hashes
        self._cells: dict[_Key, dict[_Place, _Case]] = defaultdict(dict)
        self._stale: set[_Key] = set()

    def add(self, record: RecordSummary, signer: str = "") -> None:
        key = (record.environment, record.model, record.source, record.solution)
        if record.case_hash not in self._hashes.get(record.source, ()):
            self._stale.add(key)
            return
        cases = self._cells[key]
        place = (intern(record.case), intern(record.machine), signer)
        case = cases.get(place)
        if case is None:
            case = cases[place] = _Case()
        case.add(record)
        if signer:
            case.digests += tuple(map(intern, record.digests))

    def extend(self, records: Iterable[RecordSummary]) -> EvidenceIndex:
        for record in records:
            self.add(record)
        return self

    def cell_keys(self) -> set[CellKey]:
        return {CellKey(*key) for key in self._cells.keys() | self._stale}

    def cell(self, key: CellKey) -> InferredCell:
        cases = self._cells.get(key)
        if not cases:
            return InferredCell(Verdict.STALE if key in self._stale else Verdict.BLANK)
        controls = self._cells.get(key._replace(solution=NONE), {})
        cell = _infer(key.solution, cases, controls)
        by_machine = _infer_by(cell, key.solution, cases, controls, _MACHINE)
        by_signer = _infer_by(cell, key.solution, cases, controls, _SIGNER)
        machines = [name for name, part in by_machine.items() if part.verdict is cell.verdict]
        signers = tuple(
            SignerVerdict(name, part.verdict, part.runs, part.differed, _machines_of(name, cases))
            for name, part in sorted(by_signer.items())
            if name
        )
        variants = dict(_infer_variants(key.solution, cases, controls))
        machines_by_signer = {signer.signer: signer.machines for signer in signers if signer.verdict is cell.verdict}
        signed = _case_results(cell.verdict, cases, controls, machines_by_signer, _SIGNER)
        deciding = list(_case_results(cell.verdict, cases, controls, machines, _MACHINE))
        return replace(
            cell,
            agreeing_machines=count_agreeing(machines, deciding),
            by_signer=signers,
            variants=variants,
            agreements=tuple(find_agreements(signed, machines_by_signer)),
            deciding_cases=frozenset(result.case for result in deciding),
        )


_Cases = Mapping[_Place, _Case]

# The observation that a case must have for a verdict to depend on it.
_DECIDING = {
    Verdict.NONDETERMINISTIC: _DIFFERS,
    Verdict.RAISES: _BIT["raises"],
    **dict.fromkeys(NO_DIFFERENCE_VERDICTS, _BIT["equal"]),
}
# Machines can also agree that a case does not run; for signers that is not a result.
_DECIDING_FOR_MACHINES = {**_DECIDING, Verdict.UNSUPPORTED: _UNSUPPORTED, Verdict.FAILED: _INCOMPLETE}


def _case_results(
    verdict: Verdict, cases: _Cases, controls: _Cases, names: Collection[str], by: int
) -> Iterator[CaseResult]:
    """Yield what these machines or signers showed of the cases that a verdict depends on.  by: _MACHINE or _SIGNER."""
    deciding = (_DECIDING_FOR_MACHINES if by == _MACHINE else _DECIDING).get(verdict, 0)
    for place, case in cases.items():
        if verdict in (Verdict.DETERMINISTIC, Verdict.TOO_FEW) and not _differed(controls.get(place)):
            continue  # it shows nothing about the solution
        if place[by] in names and case.observed & deciding:
            yield CaseResult(place[by], place[0], frozenset(case.digests))


def _machines_of(signer: str, cases: _Cases) -> frozenset[str]:
    return _shared(frozenset(place[_MACHINE] for place in cases if place[_SIGNER] == signer))


@lru_cache(maxsize=1024)  # thousands of cells are often of the same thousands of machines
def _shared(names: frozenset[str]) -> frozenset[str]:
    """Return an equal set that is in memory only once."""
    return names


def _differed(control: _Case | None) -> bool:
    return control is not None and bool(control.observed & _DIFFERS)


def _infer_by(cell: InferredCell, solution: str, cases: _Cases, controls: _Cases, by: int) -> dict[str, InferredCell]:
    """Return {machine or signer: the cell that its cases alone give}.  by: _MACHINE or _SIGNER."""
    names = {place[by] for place in cases}

    def cases_of(places: _Cases, name: str) -> _Cases:
        return {place: case for place, case in places.items() if place[by] == name}

    if len(names) == 1:
        return {names.pop(): cell}
    return {name: _infer(solution, cases_of(cases, name), cases_of(controls, name)) for name in names}


def _infer_variants(solution: str, cases: _Cases, controls: _Cases) -> Iterator[tuple[str, InferredCell]]:
    """Yield (variant, its cell); nothing if all cases ran in the same variant: eager mode and the first dtype."""
    variants_by_case = {case: variants_of(case) for case, _, _ in cases}
    variants = dict.fromkeys(name for group in variants_by_case.values() for name in group)
    if variants.keys() <= {EAGER, FIRST_DTYPE_LABEL}:
        return
    for variant in variants:
        own_cases = {place: case for place, case in cases.items() if variant in variants_by_case[place[0]]}
        yield variant, _infer(solution, own_cases, controls)


def _infer(solution: str, cases: _Cases, controls: _Cases) -> InferredCell:
    """Return the cell that cases under a solution give, with the same cases without a solution as controls."""
    ran = {place: case for place, case in cases.items() if case.observed != _UNSUPPORTED}
    differing = set() if solution == NONE else {place for place, case in controls.items() if case.observed & _DIFFERS}
    with_differing_control = {place: case for place, case in ran.items() if place in differing}
    verdict = _verdict(ran.values(), bool(with_differing_control))
    # A run of a case whose control never differed shows nothing about the solution.
    counted = with_differing_control if verdict is Verdict.DETERMINISTIC else ran
    runs = sum(case.runs for case in counted.values())
    if verdict is Verdict.DETERMINISTIC and runs < MIN_RUNS:
        verdict = Verdict.TOO_FEW
    proof = _proof(ran)
    if proof and proof.is_whole and verdict in NO_DIFFERENCE_VERDICTS:
        verdict = Verdict.SCHEDULE_INDEPENDENT
    return InferredCell(
        verdict,
        runs=runs,
        differed=sum(case.differed for case in counted.values()),
        controls_differed=len(with_differing_control),
        cases=len(ran),
        time_ratio=_time_ratio(ran, controls) if solution != NONE else None,
        machines=len({machine for _, machine, _ in counted or cases}),
        proof=proof,
    )


def _proof(ran: _Cases) -> CellProof | None:
    """Return the proofs of the cases that ran, on any machine: the virtual GPU is the same on all of them."""
    by_name: dict[str, list[_Case]] = defaultdict(list)
    for (name, _, _), case in ran.items():
        by_name[name].append(case)
    return gather(
        {
            name: CaseProof(
                tuple(tried for case in group for tried in case.proofs),
                frozenset[Axes]().union(*(case.differed_with for case in group)),
            )
            for name, group in by_name.items()
        }
    )


def _verdict(ran: Iterable[_Case], control_differed: bool) -> Verdict:
    observed = 0
    for case in ran:
        # If some attempts of a case completed, those that did not are ignored.
        observed |= case.observed & ~_INCOMPLETE if case.observed & _COMPLETED else case.observed
    if not observed:
        return Verdict.UNSUPPORTED
    if observed & _DIFFERS:
        return Verdict.NONDETERMINISTIC
    if observed & _INCOMPLETE:
        return Verdict.FAILED
    if observed & _BIT["raises"]:
        return Verdict.RAISES
    return Verdict.DETERMINISTIC if control_differed else Verdict.NOT_SHOWN


def _time_ratio(cases: Mapping[_Place, _Case], controls: Mapping[_Place, _Case]) -> float | None:
    """Return the median over the cases of time under the solution / time of the control; None if nothing was timed."""
    ratios = [
        _median(case) / control
        for place, case in cases.items()
        if case.seconds is not None and (control := _median(controls.get(place)))
    ]
    return round(median(ratios), 3) if ratios else None


def _median(case: _Case | None) -> float:
    """Return the median seconds of a case; 0.0 if nothing was timed."""
    if case is None or case.seconds is None:
        return 0.0
    return median(case.seconds) if isinstance(case.seconds, list) else case.seconds
