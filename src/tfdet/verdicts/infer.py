"""From records to verdicts: pure functions that say no more than the evidence.

A cell is (environment, device, source, solution).  Its verdict gathers its source's cases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median
from typing import NamedTuple, get_args

from tfdet.matrix.models import NONE
from tfdet.store.fast_records import Proof, RecordSummary
from tfdet.store.records import Observation
from tfdet.verdicts.agreement import Agreement, CaseResult, count_agreeing, find_agreements
from tfdet.verdicts.proofs import CaseProof, CellProof, gather
from tfdet.verdicts.variants import EAGER, FIRST_DTYPE_LABEL, variants_of

MIN_RUNS = 20  # equal runs: fewer leave a chance of more than 14 % that the next one differs


class Verdict(StrEnum):
    NONDETERMINISTIC = "nondeterministic"
    SCHEDULE_INDEPENDENT = "schedule-independent"
    DETERMINISTIC = "deterministic"
    TOO_FEW = "too few runs"
    NOT_SHOWN = "not shown to differ"
    RAISES = "raises"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    STALE = "stale"
    BLANK = ""


# All runs were equal.  What that shows is another question.
EQUAL_VERDICTS = (Verdict.SCHEDULE_INDEPENDENT, Verdict.DETERMINISTIC, Verdict.TOO_FEW, Verdict.NOT_SHOWN)

_BIT = {name: 1 << number for number, name in enumerate(get_args(Observation))}
_DIFFERS, _UNSUPPORTED = _BIT["differs"], _BIT["unsupported"]
_INCOMPLETE = _BIT["crashed"] | _BIT["timed-out"]
_COMPLETED = _BIT["equal"] | _BIT["differs"] | _BIT["raises"]


class SignerVerdict(NamedTuple):
    """What the records of one signer say by themselves.  machines: by which they made them."""

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
    """What the evidence says of one cell.

    runs, differed: over the cases that the verdict rests on (for `deterministic` and `too few runs`:
    those whose own control differed).  bound95: upper 95 % bound on the chance that a run differs,
    None where a run did.
    controls_differed: cases whose own control differed, of the `cases` that ran (a case counts once for each machine).
    machines: how many the verdict rests on.  agreeing_machines: how many of them reach the verdict alone, on a case on
    which another one reaches it, too; a single machine agrees with itself.  deciding_cases: those the verdict rests on.
    by_signer: the verdict of each signer's records; empty if the records are unsigned.  agreements: of signers with
    this verdict.
    variants: for an op that runs in several dtypes, or compiled, the cell of each variant that ran, by its name (see
    verdicts.variants).  The verdict says nothing about other variants.
    proof: of its cases on the virtual GPU; None where none was tried.
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
        """Those who say the same by themselves."""
        return [side for side in self.by_signer if side.verdict is self.verdict]

    @property
    def agreeing_signers(self) -> list[str]:
        """Those who agree with another on the same case."""
        return sorted({name for one in self.agreements for name in one.signers})

    @property
    def signers_conflict(self) -> bool:
        """Do signers say different things?  That one could not run it is no answer of theirs."""
        mute = (Verdict.STALE, Verdict.UNSUPPORTED, Verdict.FAILED)
        said = {side.verdict for side in self.by_signer if side.verdict not in mute}
        if said.intersection(EQUAL_VERDICTS) != {Verdict.SCHEDULE_INDEPENDENT}:  # who did not try to prove it agrees
            said.discard(Verdict.SCHEDULE_INDEPENDENT)
        return len(said) > 1

    @property
    def verified(self) -> bool:
        """Two signers agree on the same case, each by machines of their own, and none says otherwise."""
        return bool(self.agreements) and not self.signers_conflict

    @property
    def is_shown_deterministic(self) -> bool:
        """Did the solution take a difference away?  A proof alone does not say so: the control may be proved, too."""
        if self.verdict is Verdict.SCHEDULE_INDEPENDENT:
            return self.controls_differed > 0
        return self.verdict is Verdict.DETERMINISTIC

    @property
    def bound95(self) -> float | None:
        if self.verdict not in (Verdict.DETERMINISTIC, Verdict.TOO_FEW, Verdict.NOT_SHOWN) or not self.runs:
            return None
        return bound95(self.runs)


def bound95(runs: int) -> float:
    """Upper 95 % bound on a chance of which `runs` independent runs showed no instance."""
    return float(1.0 - 0.05 ** (1.0 / runs))


_Key = tuple[str, str, str, str]  # equal to the CellKey of these, and made sooner
_Place = tuple[str, str, str]  # case, machine, signer: what one did proves nothing about another


class _Case:
    """All current records of one case under one solution on one machine.  (There may be a million.)"""

    __slots__ = ("differed", "digests", "observed", "proofs", "runs", "seconds")

    def __init__(self) -> None:
        self.observed = 0  # a bit for each observation that occurred
        self.runs = 0
        self.differed = 0
        self.seconds: float | list[float] | None = None
        self.digests: tuple[str, ...] = ()  # of what somebody signed
        self.proofs: tuple[Proof, ...] = ()

    def add(self, seen: RecordSummary) -> None:
        self.observed |= _BIT[seen.observation]
        self.runs += seen.runs
        self.differed += seen.differed
        if seen.proof:
            self.proofs += (seen.proof,)
        if self.seconds is None:
            self.seconds = seen.seconds
        elif seen.seconds is not None:
            earlier = self.seconds if isinstance(self.seconds, list) else [self.seconds]
            self.seconds = [*earlier, seen.seconds]


class EvidenceIndex:
    """Records gathered one by one, by cell and case; `cell(key)` infers."""

    def __init__(self, current_hashes: Mapping[str, set[str]]) -> None:
        self._hashes = current_hashes
        self._cells: dict[_Key, dict[_Place, _Case]] = defaultdict(dict)
        self._stale: set[_Key] = set()

    def add(self, seen: RecordSummary, signer: str = "") -> None:
        key = (seen.environment, seen.model, seen.source, seen.solution)
        if seen.case_hash not in self._hashes.get(seen.source, ()):
            self._stale.add(key)
            return
        cases = self._cells[key]
        place = (seen.case, seen.machine, signer)
        case = cases.get(place)
        if case is None:
            case = cases[place] = _Case()
        case.add(seen)
        if signer:
            case.digests += tuple(seen.digests)

    def extend(self, many: Iterable[RecordSummary]) -> EvidenceIndex:
        for seen in many:
            self.add(seen)
        return self

    def cell_keys(self) -> set[CellKey]:
        return {CellKey(*key) for key in self._cells.keys() | self._stale}

    def cell(self, key: CellKey) -> InferredCell:
        cases = self._cells.get(key)
        if not cases:
            return InferredCell(Verdict.STALE if key in self._stale else Verdict.BLANK)
        controls = self._cells.get(key._replace(solution=NONE), {})
        whole = _infer(key.solution, cases, controls)
        machines, signers = (
            _infer_by(whole, key.solution, cases, controls, 1),
            _infer_by(whole, key.solution, cases, controls, 2),
        )
        saying = [name for name, part in machines.items() if part.verdict is whole.verdict]
        sides = tuple(
            SignerVerdict(
                name, part.verdict, part.runs, part.differed, frozenset(place[1] for place in cases if place[2] == name)
            )
            for name, part in sorted(signers.items())
            if name
        )
        ways = dict(_infer_variants(key.solution, cases, controls))
        same = {side.signer: side.machines for side in sides if side.verdict is whole.verdict}
        agreed = tuple(find_agreements(_case_results(whole.verdict, cases, controls, same, 2), same))
        told = list(_case_results(whole.verdict, cases, controls, saying, 1))
        return replace(whole, agreeing_machines=count_agreeing(saying, told), by_signer=sides, variants=ways,
                       agreements=agreed, deciding_cases=frozenset(one.case for one in told))  # fmt: skip


_Cases = Mapping[_Place, _Case]


_RESTS_ON = {
    Verdict.NONDETERMINISTIC: _DIFFERS,
    Verdict.RAISES: _BIT["raises"],
    **dict.fromkeys(EQUAL_VERDICTS, _BIT["equal"]),
}
# Of signers that is no answer; machines may well agree that a case does not run.
_SEEN = {**_RESTS_ON, Verdict.UNSUPPORTED: _UNSUPPORTED, Verdict.FAILED: _INCOMPLETE}


def _case_results(
    verdict: Verdict, cases: _Cases, controls: _Cases, among: Collection[str], by: int
) -> Iterator[CaseResult]:
    """What each of these machines (by: 1) or signers (2) showed of the cases that a verdict rests on."""
    for place, case in cases.items():
        if verdict in (Verdict.DETERMINISTIC, Verdict.TOO_FEW) and not _differed(controls.get(place)):
            continue  # it shows nothing of the solution
        if place[by] in among and case.observed & (_SEEN if by == 1 else _RESTS_ON).get(verdict, 0):
            yield CaseResult(place[by], place[0], frozenset(case.digests))


def _differed(control: _Case | None) -> bool:
    return control is not None and bool(control.observed & _DIFFERS)


def _infer_by(whole: InferredCell, solution: str, cases: _Cases, controls: _Cases, by: int) -> dict[str, InferredCell]:
    """What each machine (by: 1) or signer (2) says by itself."""
    names = {place[by] for place in cases}

    def own(among: _Cases, name: str) -> _Cases:
        return {place: case for place, case in among.items() if place[by] == name}

    if len(names) == 1:
        return {names.pop(): whole}
    return {name: _infer(solution, own(cases, name), own(controls, name)) for name in names}


def _infer_variants(solution: str, cases: _Cases, controls: _Cases) -> Iterator[tuple[str, InferredCell]]:
    """None where all cases were run in the same way: op by op, in the first dtype."""
    names = {case: variants_of(case) for case, _, _ in cases}
    found = dict.fromkeys(name for some in names.values() for name in some)
    if found.keys() <= {EAGER, FIRST_DTYPE_LABEL}:
        return
    for way in found:
        yield way, _infer(solution, {place: case for place, case in cases.items() if way in names[place[0]]}, controls)


def _infer(solution: str, cases: _Cases, controls: _Cases) -> InferredCell:
    ran = {name: case for name, case in cases.items() if case.observed != _UNSUPPORTED}
    differing = set() if solution == NONE else {name for name, case in controls.items() if case.observed & _DIFFERS}
    proven = {name: case for name, case in ran.items() if name in differing}
    verdict = _verdict(ran.values(), bool(proven))
    # A run of a case that never differs by itself tells nothing about the solution.
    weighed = proven if verdict is Verdict.DETERMINISTIC else ran
    runs = sum(case.runs for case in weighed.values())
    if verdict is Verdict.DETERMINISTIC and runs < MIN_RUNS:
        verdict = Verdict.TOO_FEW
    proof = _proof(ran)
    if proof and proof.is_whole and verdict in EQUAL_VERDICTS:
        verdict = Verdict.SCHEDULE_INDEPENDENT
    return InferredCell(
        verdict,
        runs=runs,
        differed=sum(case.differed for case in weighed.values()),
        controls_differed=len(proven),
        cases=len(ran),
        time_ratio=_time_ratio(ran, controls) if solution != NONE else None,
        machines=len({machine for _, machine, _ in weighed or cases}),
        proof=proof,
    )


def _proof(ran: _Cases) -> CellProof | None:
    """Of the cases that ran, wherever: the device that proves is the same on every machine."""
    by_name: dict[str, list[_Case]] = defaultdict(list)
    for (name, _, _), case in ran.items():
        by_name[name].append(case)
    return gather(
        {
            name: CaseProof(
                tuple(proof for case in some for proof in case.proofs), any(case.observed & _DIFFERS for case in some)
            )
            for name, some in by_name.items()
        }
    )


def _verdict(ran: Iterable[_Case], proven: bool) -> Verdict:
    observed = 0
    for case in ran:
        # What came to an end says more than an attempt that did not.
        observed |= case.observed & ~_INCOMPLETE if case.observed & _COMPLETED else case.observed
    if not observed:
        return Verdict.UNSUPPORTED
    if observed & _DIFFERS:
        return Verdict.NONDETERMINISTIC
    if observed & _INCOMPLETE:
        return Verdict.FAILED
    if observed & _BIT["raises"]:
        return Verdict.RAISES
    return Verdict.DETERMINISTIC if proven else Verdict.NOT_SHOWN


def _time_ratio(cases: Mapping[_Place, _Case], controls: Mapping[_Place, _Case]) -> float | None:
    """Median over the cases of the time under the solution to the control's."""
    ratios = [
        _median(case) / control
        for name, case in cases.items()
        if case.seconds is not None and (control := _median(controls.get(name)))
    ]
    return round(median(ratios), 3) if ratios else None


def _median(case: _Case | None) -> float:
    """Seconds, 0.0 where nothing was timed."""
    if case is None or case.seconds is None:
        return 0.0
    return median(case.seconds) if isinstance(case.seconds, list) else case.seconds
