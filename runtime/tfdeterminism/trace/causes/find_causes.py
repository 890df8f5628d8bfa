"""What two runs say when they are laid side by side: the same, diverged, or not the same things."""

import collections

import numpy

from ..align.common_prefix import CommonPrefix
from ..align.table import MISSING
from ..faults import CauseKind
from ..schema import traits
from . import dismissals, path_mismatch
from .cause import Cause, in_graph
from .def_use import may_forward
from .step_facts import PairFlows, StepFacts
from .suspects import Suspects

MAX_CAUSES = 32


class PairAnalysis(object):
    """The causes of the differences of two runs.

    pair: an align.table.AlignedPair. result: "same", "diverged" or "structure" (the runs execute different ops).
    causes: the Causes, the first one first. preexisting: the first read of a state that differs already when recording
    begins, if there is no other cause. first_step: the earliest step that differs, or None. differing, missing: numbers
    of records. dismissed: {module of dismissals: number of records that it explains}.
    """

    def __init__(self, pair):
        self.pair = pair
        self.causes = []
        self.first_step = self.preexisting = None
        self.dismissed = collections.Counter()
        self.common_prefix = CommonPrefix(pair)
        self.differs, missing = _differences(pair)
        self.common_prefix.clip(self.differs, missing)
        self.missing_slots = numpy.flatnonzero(missing)
        self.differing = int(numpy.count_nonzero(self.differs))
        self.missing = len(self.missing_slots)
        self._flows = PairFlows(pair, self.differs)
        self.find_causes()

    @property
    def result(self):
        if self.missing or any(root.kind is CauseKind.STRUCTURE for root in self.causes):
            return "structure"
        if self.causes or self.preexisting is not None:
            return "diverged"
        return "structure" if self.common_prefix.is_uneven else "same"

    def steps(self):
        """(step, records, differing or missing) of each step that has records."""
        step, _ = _positions(self.pair)
        numbers, place = numpy.unique(step, return_inverse=True)  # a step's number may be large
        bad = self.differs.copy()
        bad[self.missing_slots] = True
        records = numpy.bincount(place, minlength=len(numbers))
        differing = numpy.bincount(place[bad], minlength=len(numbers))
        return list(zip(numbers.tolist(), records.tolist(), differing.tolist()))

    def step_slots(self, step):
        """Slots of a step in the order of the run that has them."""
        steps, order = _positions(self.pair)
        slots = numpy.flatnonzero(steps == step)
        return slots[numpy.argsort(order[slots], kind="mergesort")]

    def slot_state(self, slot):
        """"same", "differs", "missing" or "written" of one slot."""
        if MISSING in (self.pair.order[0][slot], self.pair.order[1][slot]):
            return "missing"
        if self.differs[slot]:
            return "differs"
        _, definition = self.pair.definition(int(self.pair.groups_of(slot)))
        return "written" if definition["kind"] == "write" else "same"

    def find_causes(self):
        structural, differing = self._structural()
        self._find_by_value(structural, differing)
        self._add(self._without_consequences(structural))
        self.preexisting = None if self.causes else self.preexisting
        if self.causes or self.preexisting:
            self.first_step = (self.causes or [self.preexisting])[0].step

    def _find_by_value(self, structural, differing):
        """The causes of the earliest step that has any: after it everything may be a consequence."""
        masked_before = []
        for step, slots in _by_step(self.pair, differing):
            if structural and structural[0].step < step:
                break
            facts = StepFacts(self._flows, step, slots, bool(structural) and structural[0].step == step)
            causes, masked_now = self._causes_of(facts)
            masked_before = masked_before or masked_now
            if causes and masked_before and all(root.kind is CauseKind.UNEXPLAINED for root in causes):
                causes = masked_before  # it was kept for later
            if causes:
                self._set_causes(causes)
                return
        if not structural:
            self._set_causes(masked_before)

    def _causes_of(self, facts):
        """(causes of one step; what was dismissed as masked in it)."""
        found, masked_now = Suspects(self.pair, self.differs, facts.step, facts.slots).find_causes(), []
        for rule in dismissals.DISMISSALS:
            dismissed = [root for root in found if rule.holds(root, facts)]
            if dismissed:
                self.dismissed[rule] += rule.count(dismissed, facts)
                found = [root for root in found if root not in dismissed]
            masked_now = dismissed if rule is dismissals.masked else masked_now
        if len(found) < 2:
            return found, masked_now
        rest = [root for root in found if not dismissals.report_only.holds(root, facts)]
        return found if all(root.is_state for root in rest) else rest, masked_now

    def _set_causes(self, causes):
        """A state that differs already is no op's fault, if anything else is."""
        self.causes = [root for root in causes if not root.is_state]
        self.preexisting = causes[0] if causes and not self.causes else None

    def _without_consequences(self, structural):
        """The structural cause, unless one of the others explains it: `missing` tells of it then."""
        explained = any(_is_before(root, structural[0]) or self._is_argument_of(root, structural[0])
                        for root in self.causes if structural)
        return [] if explained else structural

    def _add(self, structural):
        if structural:  # what is only wired otherwise is so because of what one run lacks
            self.causes = [root for root in self.causes
                          if root.kind not in (CauseKind.STRUCTURE, CauseKind.UNEXPLAINED)]
        self.causes = sorted(self.causes + structural,
                            key=lambda root: (root.step, root.order, root.kind.value))[:MAX_CAUSES]

    def _structural(self):
        """The first record that one run lacks, as [cause], or [], and flags of what differs by its value: nothing does
        any more behind where the runs part."""
        found, unlike = _first_missing(self.pair, self.missing_slots), self.differs.copy()
        unlike[self.missing_slots] = True
        steps, _ = _positions(self.pair)
        looked_at = sorted({int(steps[unlike].min())} | {root.step for root in found}) if unlike.any() else []
        found_at = (path_mismatch.find_path_mismatch(self.pair, step, unlike) for step in looked_at)
        parted = next(filter(None, found_at), None)
        if parted is None or any(root.step < parted.cause.step or root.step == parted.cause.step
                                 and root.order < parted.orders[root.side] for root in found):
            return found, self.differs
        return [parted.cause], self.differs & ~parted.slots_after(self.pair)

    def _is_argument_of(self, root, other):
        """Is it a value that a call gets in whose function the runs part? It is recorded when the call has ended."""
        if root.kind is not CauseKind.VALUE or root.step != other.step or root.side or not in_graph(other.definition):
            return False
        facts = StepFacts(self._flows, root.step, (), True)
        body = [other.definition["function"], other.definition["trace"]]
        reached = facts.flow().descendants(root.definition, lambda one: may_forward(one) or facts.differs_now(one))
        return any(body in one["calls"] for one in reached)


def _is_before(root, other):
    """Until `other`, the first record that one run lacks, both runs count their records alike."""
    return root.step < other.step or (root.step == other.step and root.kind in (CauseKind.VALUE, CauseKind.UNORDERED)
                                      and root.order < other.order)


def _differences(pair):
    """(differs, missing): a flag for each slot."""
    have = [order != MISSING for order in pair.order]
    differs = have[0] & have[1]
    differs &= pair.value[0] != pair.value[1]
    missing = have[0] != have[1]
    slots = numpy.flatnonzero(missing)
    groups = pair.groups_of(slots)
    ahead = [group for group in numpy.unique(groups).tolist() if _is_prefetch(pair, group)]
    missing[slots[numpy.isin(groups, ahead)]] = False
    for group, edge in _boundary_reads(pair):
        missing[pair.slots(group)] = False  # when a variable that nobody needs is gone is chance
        differs[pair.slots(group)] &= edge
    return differs, missing


def _boundary_reads(pair):
    """(group, does it tell something?) of what is read at the edges of what is recorded. Where a variable is but given
    its value, that it has become another says nothing of what was recorded."""
    edges, changed, given = [], set(), {}
    for side in (0, 1):
        for number in pair.runs[side].ids():
            one, group = pair.runs[side].definition(number), int(pair.group[side][number])
            if one["attrs"].get("boundary"):
                edges.append((group, one))
            elif one["kind"] == "write" and pair.record_counts[side][group]:
                given.setdefault(one["variable"], set()).add(group)
                changed.update([] if traits.OVERWRITES in one["traits"] else [one["variable"]])
    changed.update(variable for variable, groups in given.items() if len(groups) > 1)  # which came last?
    return [(group, one["attrs"]["boundary"] == "begin" or one["variable"] in changed) for group, one in edges]


def _is_prefetch(pair, group):
    """Is it chance how often this was recorded? Both runs must know it."""
    return min(int(pair.ids[side][group]) for side in (0, 1)) >= 0 \
        and bool(pair.definition(group)[1]["attrs"].get("prefetch"))


def _positions(pair):
    """(step, order) of each slot, by the run that has it, the first where both do."""
    absent = pair.order[0] == MISSING
    return numpy.where(absent, pair.step[1], pair.step[0]), numpy.where(absent, pair.order[1], pair.order[0])


def _by_step(pair, differs):
    """(step, slots) of the differing slots, step by step."""
    slots = numpy.flatnonzero(differs)
    if not len(slots):
        return
    steps = pair.step[0][slots]
    turn = numpy.argsort(steps, kind="mergesort")
    slots, steps = slots[turn], steps[turn]
    ends = numpy.flatnonzero(numpy.diff(steps)) + 1
    first = 0
    for end in ends.tolist() + [len(slots)]:
        yield int(steps[first]), slots[first:end]
        first = end


def _first_missing(pair, slots):
    """The first record that one run lacks, as [cause], or []: of its step the one that was defined first."""
    found = []
    for side in (0, 1):
        mine = slots[pair.order[side][slots] != MISSING]
        if not len(mine):
            continue
        step = int(pair.step[side][mine].min())
        mine = mine[pair.step[side][mine] == step]
        groups = pair.groups_of(mine)
        alone = pair.ids[1 - side][groups] < 0  # else the other run only has fewer of them
        turn = numpy.lexsort((pair.order[side][mine], pair.ids[side][groups], ~alone))[0]
        slot, group = int(mine[turn]), int(groups[turn])
        order, number = int(pair.order[side][slot]), int(pair.ids[side][group])
        definition = pair.runs[side].definition(number, order)
        cause = Cause(CauseKind.STRUCTURE, side, definition, step, order, group, slot)
        found.append(((step, not alone[turn], number), cause))
    return [root for _, root in sorted(found, key=lambda one: one[0])[:1]]
