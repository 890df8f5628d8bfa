"""The comparison of two aligned traces: whether they agree, and which records are the causes of the differences.

A slot is an index into the aligned records of two runs, a group the slots of one definition; pair.order is a record's
place in the file of its run, or MISSING; a `root` is a Cause.
"""

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
    causes: the Causes, the first one first. initial_difference: the first read of a state that differs already when
    recording begins, if there is no other cause. first_step: the earliest step that differs, or None. differing,
    missing: numbers of records. dismissed: {module of dismissals: number of records that it explains}.
    """

    def __init__(self, pair):
        self.pair = pair
        self.causes = []
        self.first_step = self.initial_difference = None
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
        if self.causes or self.initial_difference is not None:
            return "diverged"
        return "structure" if self.common_prefix.is_uneven else "same"

    def steps(self):
        """Return (step, records, differing or missing records) of each step that has records."""
        step, _ = _positions(self.pair)
        numbers, index = numpy.unique(step, return_inverse=True)  # a step's number may be large
        differing_flags = self.differs.copy()
        differing_flags[self.missing_slots] = True
        records = numpy.bincount(index, minlength=len(numbers))
        differing = numpy.bincount(index[differing_flags], minlength=len(numbers))
        return list(zip(numbers.tolist(), records.tolist(), differing.tolist()))

    def step_slots(self, step):
        """Return the slots of a step in the order of the run that has them."""
        steps, order = _positions(self.pair)
        slots = numpy.flatnonzero(steps == step)
        return slots[numpy.argsort(order[slots], kind="mergesort")]

    def slot_state(self, slot):
        """Return "same", "differs", "missing" or "written" for one slot."""
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
        self.initial_difference = None if self.causes else self.initial_difference
        if self.causes or self.initial_difference:
            self.first_step = (self.causes or [self.initial_difference])[0].step

    def _find_by_value(self, structural, differing):
        """Set the causes of the earliest step that has any; later differences may be consequences."""
        masked_before = []
        for step, slots in _by_step(self.pair, differing):
            if structural and structural[0].step < step:
                break
            facts = StepFacts(self._flows, step, slots, bool(structural) and structural[0].step == step)
            causes, masked_now = self._causes_of(facts)
            masked_before = masked_before or masked_now
            if causes and masked_before and all(root.kind is CauseKind.UNEXPLAINED for root in causes):
                causes = masked_before
            if causes:
                self._set_causes(causes)
                return
        if not structural:
            self._set_causes(masked_before)

    def _causes_of(self, facts):
        """Return (causes of one step, causes that were dismissed as masked in it)."""
        causes, masked_now = Suspects(self.pair, self.differs, facts.step, facts.slots).find_causes(), []
        for rule in dismissals.DISMISSALS:
            dismissed = [root for root in causes if rule.holds(root, facts)]
            if dismissed:
                self.dismissed[rule] += rule.count_records(dismissed, facts)
                causes = [root for root in causes if root not in dismissed]
            masked_now = dismissed if rule is dismissals.masked else masked_now
        if len(causes) < 2:
            return causes, masked_now
        certain = [root for root in causes if not dismissals.report_only.holds(root, facts)]
        return causes if all(root.is_state for root in certain) else certain, masked_now

    def _set_causes(self, causes):
        """Set the causes; a state that differs already becomes `initial_difference` if there is no other cause."""
        self.causes = [root for root in causes if not root.is_state]
        self.initial_difference = causes[0] if causes and not self.causes else None

    def _without_consequences(self, structural):
        """Return the structural cause, or [] if another cause explains it."""
        explained = any(_is_before(root, structural[0]) or self._is_argument_of(root, structural[0])
                        for root in self.causes if structural)
        return [] if explained else structural

    def _add(self, structural):
        if structural:  # the record that one run lacks explains ops that are only wired differently
            self.causes = [root for root in self.causes
                          if root.kind not in (CauseKind.STRUCTURE, CauseKind.UNEXPLAINED)]
        self.causes = sorted(self.causes + structural,
                            key=lambda root: (root.step, root.order, root.kind.value))[:MAX_CAUSES]

    def _structural(self):
        """Return ([the cause at the first record that one run lacks] or [], flags of the slots whose values differ).

        Slots behind a path mismatch have no flag.
        """
        causes, unequal = _first_missing(self.pair, self.missing_slots), self.differs.copy()
        unequal[self.missing_slots] = True
        steps, _ = _positions(self.pair)
        candidate_steps = sorted({int(steps[unequal].min())} | {root.step for root in causes}) if unequal.any() else []
        mismatches = (path_mismatch.find_path_mismatch(self.pair, step, unequal) for step in candidate_steps)
        mismatch = next(filter(None, mismatches), None)
        if mismatch is None or any(root.step < mismatch.cause.step or root.step == mismatch.cause.step
                                   and root.order < mismatch.orders[root.side] for root in causes):
            return causes, self.differs
        return [mismatch.cause], self.differs & ~mismatch.slots_after(self.pair)

    def _is_argument_of(self, root, other):
        """Return whether a cause is an argument of the call in which the paths of the runs part.

        The call's arguments are recorded when the call has ended.
        """
        if root.kind is not CauseKind.VALUE or root.step != other.step or root.side or not in_graph(other.definition):
            return False
        facts = StepFacts(self._flows, root.step, (), True)
        body = [other.definition["function"], other.definition["trace"]]
        reached = facts.flow().descendants(
            root.definition, lambda definition: may_forward(definition) or facts.differs_now(definition))
        return any(body in definition["calls"] for definition in reached)


def _is_before(root, other):
    """Return whether a cause precedes `other`, the first record that one run lacks."""
    return root.step < other.step or (root.step == other.step and root.kind in (CauseKind.VALUE, CauseKind.UNORDERED)
                                      and root.order < other.order)


def _differences(pair):
    """Return (differs, missing): a flag for each slot."""
    present = [order != MISSING for order in pair.order]
    differs = present[0] & present[1]
    differs &= pair.value[0] != pair.value[1]
    missing = present[0] != present[1]
    slots = numpy.flatnonzero(missing)
    groups = pair.groups_of(slots)
    prefetched = [group for group in numpy.unique(groups).tolist() if _is_prefetch(pair, group)]
    missing[slots[numpy.isin(groups, prefetched)]] = False
    for group, is_meaningful in _boundary_reads(pair):
        missing[pair.slots(group)] = False  # it is chance when an unused variable is garbage-collected
        differs[pair.slots(group)] &= is_meaningful
    return differs, missing


def _boundary_reads(pair):
    """Return (group, whether a difference is meaningful) of the reads where recording begins and ends.

    At the end, a variable that was only assigned may differ for reasons that lie outside of the records.
    """
    reads, updated, assignments = [], set(), {}
    for index in (0, 1):
        for number in pair.runs[index].ids():
            definition, group = pair.runs[index].definition(number), int(pair.group[index][number])
            if definition["attrs"].get("boundary"):
                reads.append((group, definition))
            elif definition["kind"] == "write" and pair.record_counts[index][group]:
                assignments.setdefault(definition["variable"], set()).add(group)
                updated.update([] if traits.OVERWRITES in definition["traits"] else [definition["variable"]])
    updated.update(variable for variable, groups in assignments.items() if len(groups) > 1)  # their order may differ
    return [(group, definition["attrs"]["boundary"] == "begin" or definition["variable"] in updated)
            for group, definition in reads]


def _is_prefetch(pair, group):
    """Return whether it is chance how often an op that both runs know was recorded."""
    return min(int(pair.ids[index][group]) for index in (0, 1)) >= 0 \
        and bool(pair.definition(group)[1]["attrs"].get("prefetch"))


def _positions(pair):
    """Return (step, order) of each slot in the run that has it, the first run if both do."""
    absent = pair.order[0] == MISSING
    return numpy.where(absent, pair.step[1], pair.step[0]), numpy.where(absent, pair.order[1], pair.order[0])


def _by_step(pair, differs):
    """Yield (step, slots) of the differing slots, step by step."""
    slots = numpy.flatnonzero(differs)
    if not len(slots):
        return
    steps = pair.step[0][slots]
    sorting = numpy.argsort(steps, kind="mergesort")
    slots, steps = slots[sorting], steps[sorting]
    ends = numpy.flatnonzero(numpy.diff(steps)) + 1
    begin = 0
    for end in ends.tolist() + [len(slots)]:
        yield int(steps[begin]), slots[begin:end]
        begin = end


def _first_missing(pair, slots):
    """Return [the cause at the first record that one run lacks], or [].

    Of several such records in one step, the one that was defined first is chosen.
    """
    candidates = []
    for index in (0, 1):
        own_slots = slots[pair.order[index][slots] != MISSING]
        if not len(own_slots):
            continue
        step = int(pair.step[index][own_slots].min())
        own_slots = own_slots[pair.step[index][own_slots] == step]
        groups = pair.groups_of(own_slots)
        is_undefined = pair.ids[1 - index][groups] < 0  # else the other run only has fewer of them
        choice = numpy.lexsort((pair.order[index][own_slots], pair.ids[index][groups], ~is_undefined))[0]
        slot, group = int(own_slots[choice]), int(groups[choice])
        order, number = int(pair.order[index][slot]), int(pair.ids[index][group])
        definition = pair.runs[index].definition(number, order)
        cause = Cause(CauseKind.STRUCTURE, index, definition, step, order, group, slot)
        candidates.append(((step, not is_undefined[choice], number), cause))
    return [root for _, root in sorted(candidates, key=lambda candidate: candidate[0])[:1]]
