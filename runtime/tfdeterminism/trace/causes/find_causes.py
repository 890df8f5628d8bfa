"""What two runs say when they are laid side by side: the same, diverged, or not the same things."""

import numpy

from ..align.common_prefix import Reach
from ..align.table import MISSING
from . import path_mismatch
from .cause import Root, in_graph
from .def_use import Flow, calls_python, copies, hands_on, tells_python
from .suspects import Suspects
from .variable_writes import OVERWRITES, gets_one_of, written_in_any_order

ROOTS = 32  # listed at most
_WHOLE_READS = ("ReadVariableOp", "Variable")  # not those of some rows


class Verdict(object):
    """What a pair says. result: "same", "diverged", "structure"; roots: the first cause first.

    before: the first read of a state that differs already when recording begins, where nothing else is found.
    first_step: the earliest that differs, or None. differing, missing: numbers of records.
    reordered: keys whose values are the same in another order. strings: records of strings that differ
    and are no cause: see _only_names. unwritten: the same of memory that nobody had written. steps: array of (step,
    records, differing). front: slots of the first differing step in the first run's order.
    """

    def __init__(self, pair):
        self.pair = pair
        self.roots = []
        self.first_step = self.before = None
        self.reordered = self.strings = self.unwritten = 0
        self._flow = self._open = None
        self.reach = Reach(pair)
        self.differs, missing = _differences(pair)
        self.reach.narrow(self.differs, missing)
        self.missing_slots = numpy.flatnonzero(missing)
        self.differing = int(numpy.count_nonzero(self.differs))
        self.missing = len(self.missing_slots)
        self._find()

    @property
    def result(self):
        if self.missing or any(root.kind == "structure" for root in self.roots):
            return "structure"
        if self.roots or self.before is not None:
            return "diverged"
        return "structure" if self.reach.uneven else "same"

    def steps(self):
        """(step, records, differing or missing) of each step that has records."""
        step, _ = _places(self.pair)
        numbers, place = numpy.unique(step, return_inverse=True)  # a step's number may be large
        bad = self.differs.copy()
        bad[self.missing_slots] = True
        records = numpy.bincount(place, minlength=len(numbers))
        differing = numpy.bincount(place[bad], minlength=len(numbers))
        return list(zip(numbers.tolist(), records.tolist(), differing.tolist()))

    def front(self, step):
        """Slots of a step in the order of the run that has them."""
        steps, order = _places(self.pair)
        slots = numpy.flatnonzero(steps == step)
        return slots[numpy.argsort(order[slots], kind="mergesort")]

    def state(self, slot):
        """"same", "differs", "missing" or "written" of one slot."""
        if MISSING in (self.pair.order[0][slot], self.pair.order[1][slot]):
            return "missing"
        if self.differs[slot]:
            return "differs"
        _, definition = self.pair.definition(int(self.pair.groups_of(slot)))
        return "written" if definition["kind"] == "write" else "same"

    def _find(self):
        (structural, differing), masked = self._structural(), []
        for step, slots in _by_step(self.pair, differing):
            if structural and structural[0].step < step:
                break
            found = Suspects(self.pair, self.differs, step, slots).roots()
            names = [root for root in found if self._only_names(root)]
            self.strings += len(names) and self._count(slots, lambda one: one["dtype"] == "string")
            nobodys = [root for root in found
                       if root.definition["attrs"].get("unwritten") and self._comes_to_nothing(root)]
            self.unwritten += len(nobodys) and self._count(
                slots, lambda one: one["attrs"].get("unwritten") or copies(one))
            found = [root for root in found if root not in names + nobodys]
            decided = bool(structural) and structural[0].step == step
            without = [root for root in found if self._leads_nowhere(root, decided)]
            masked = masked or without
            found = [root for root in found if root not in without]
            causes = [root for root in found if root.kind != "order" or not in_graph(root.definition)]
            self.reordered += len(found) - len(causes)
            others = [root for root in causes if len(causes) == 1 or not self._only_told(root)]
            causes = causes if all(root.is_state for root in others) else others
            if causes and masked and all(root.kind == "unexplained" for root in causes):
                causes = masked  # it was kept for later
            if causes:
                self._blame(causes)
                break
        if not self.roots and self.before is None and not structural:
            self._blame(masked)
        if structural and any(_is_before(root, structural[0]) or self._handed_to(root, structural[0])
                              for root in self.roots):
            structural = []  # a consequence; `missing` tells of it
        if structural:  # what is only wired otherwise is so because of what one run lacks
            self.roots = [root for root in self.roots if root.kind not in ("structure", "unexplained")]
        self.roots = sorted(self.roots + structural, key=lambda root: (root.step, root.order, root.kind))[:ROOTS]
        if self.roots:
            self.before = None
        if self.roots or self.before:
            self.first_step = (self.roots or [self.before])[0].step

    def _blame(self, causes):
        """A state that differs already is nobody's fault, if anything else is."""
        self.roots = [root for root in causes if not root.is_state]
        self.before = causes[0] if causes and not self.roots else None

    def _structural(self):
        """The first record that one run lacks, as [cause], or [], and flags of what differs by its value: nothing does
        any more behind where the runs part."""
        found, unlike = _lacking(self.pair, self.missing_slots), self.differs.copy()
        unlike[self.missing_slots] = True
        steps, _ = _places(self.pair)
        looked_at = sorted({int(steps[unlike].min())} | {root.step for root in found}) if unlike.any() else []
        parted = next(filter(None, (path_mismatch.of(self.pair, step, unlike) for step in looked_at)), None)
        if parted is None or any(root.step < parted.root.step or root.step == parted.root.step
                                 and root.order < parted.orders[root.side] for root in found):
            return found, self.differs
        return [parted.root], self.differs & ~parted.behind(self.pair)

    def _handed_to(self, root, other):
        """Is it a value that a call gets in whose function the runs part? It is recorded when the call has ended."""
        if root.kind != "value" or root.step != other.step or root.side or not in_graph(other.definition):
            return False
        self._flow = self._flow or Flow(self.pair.runs[0])

        def passes(one):
            return not one["recorded"] or hands_on(one) or self._differs_at(one, root.step)

        body = [other.definition["function"], other.definition["trace"]]
        return any(body in one["calls"] for one in self._flow.behind(root.definition, passes))

    def _only_names(self, root):
        """Is it a string from which no number comes that differs: a temporary file's name, a handle?"""
        if root.definition["dtype"] != "string" or root.kind == "structure" or root.side:
            return False
        self._flow = self._flow or Flow(self.pair.runs[0])

        def differs(one):
            return self.pair.ever_differs(one["id"], 0)

        def passes(one):
            return hands_on(one) or differs(one)

        return not any(differs(one) and one["dtype"] != "string"
                       for one in self._flow.behind(root.definition, passes))

    def _comes_to_nothing(self, root):
        """Does nothing differ that is computed of memory which nobody had written? Copies of it are but copies."""
        flow = Flow(self.pair.runs[root.side])

        def differs(one):
            return self.pair.ever_differs(one["id"], root.side)

        return not any(differs(one) and not copies(one)
                       for one in flow.behind(root.definition, lambda one: copies(one) and differs(one)))

    def _leads_nowhere(self, root, decided):
        """Is what it feeds the same in this step: masked, rounded away, compared with something large? decided: do the
        runs part in this step? Then a number that Python is told leads there."""
        if root.kind != "value" or root.side or root.definition["kind"] == "write":
            return False
        self._flow = self._flow or Flow(self.pair.runs[0])
        walk, seen = [root.definition], {root.definition["id"]}
        while walk:
            consumers = self._flow.of(walk.pop())
            consumers = [one for one in consumers if not self._overwritten(one, root.step)] if consumers else [None]
            if any(one is None or one["kind"] == "write" for one in consumers):
                return False
            for one in consumers:
                if decided and tells_python(one) and self._differs_at(one, root.step):
                    return False
                if one["id"] not in seen and (not one["recorded"] or calls_python(one) or self._differs_at(
                        one, root.step)):
                    walk.append(one)
                seen.add(one["id"])
        return True

    def _only_told(self, root):
        """Does a run of a session read and write a variable in any order, and is what comes of the read but fetched?"""
        mine, run = root.definition, self.pair.runs[0]
        if self._open is None:
            self._open = written_in_any_order(run)
        if root.side or not in_graph(mine) or not (
                root.kind == "open" and mine["variable"] in self._open
                or root.kind == "value" and mine["kind"] == "op" and gets_one_of(mine, run, self._open)):
            return False
        self._flow = self._flow or Flow(self.pair.runs[0])

        def passes(one):
            return one["dtype"] != "resource" and (
                not one["recorded"] or one["kind"] == "call" or self._differs_at(one, root.step))

        return not any(one["kind"] == "write" or calls_python(one)
                       for one in self._flow.behind(mine, passes))

    def _overwritten(self, write, step):
        """Had the variable another value, the same in both runs, before anybody read what was written eagerly?"""
        if write["kind"] != "write" or in_graph(write):
            return False
        self._flow = self._flow or Flow(self.pair.runs[0])
        order, first = self.pair.order[0], None
        written = self._slots_of(write)
        since = min([int(order[slot]) for slot in written if self.pair.step[0][slot] == step] or [int(MISSING)])
        for one in self._flow.of(write):
            slots = self._slots_of(one)
            slots = slots[(order[slots] > since) & (order[slots] != MISSING)]
            if len(slots) and (first is None or order[slots[0]] < first[0]):
                first = order[slots[0]], one, slots[0]
        return first is not None and first[1]["op"] in _WHOLE_READS and not self.differs[first[2]]

    def _slots_of(self, one):
        part = self.pair.slots(int(self.pair.group[0][one["id"]]))
        return numpy.arange(part.start, part.stop)

    def _differs_at(self, one, step):
        slots = self.pair.slots(int(self.pair.group[0][one["id"]]))
        return bool((self.differs[slots] & (self.pair.step[0][slots] == step)).any())

    def _count(self, slots, wanted):
        groups, counts = numpy.unique(self.pair.groups_of(slots), return_counts=True)
        return sum(count for group, count in zip(groups.tolist(), counts.tolist())
                   if wanted(self.pair.definition(group)[1]))


def _is_before(root, other):
    """Until `other`, the first record that one run lacks, both runs count their records alike."""
    return root.step < other.step or (root.step == other.step and root.kind in ("value", "open")
                                      and root.order < other.order)


def _differences(pair):
    """(differs, missing): a flag for each slot."""
    have = [order != MISSING for order in pair.order]
    differs = have[0] & have[1]
    differs &= pair.value[0] != pair.value[1]
    missing = have[0] != have[1]
    slots = numpy.flatnonzero(missing)
    groups = pair.groups_of(slots)
    ahead = [group for group in numpy.unique(groups).tolist() if _runs_ahead(pair, group)]
    missing[slots[numpy.isin(groups, ahead)]] = False
    for group, edge in _edges(pair):
        missing[pair.slots(group)] = False  # when a variable that nobody needs is gone is chance
        differs[pair.slots(group)] &= edge
    return differs, missing


def _edges(pair):
    """(group, does it tell something?) of what is read at the edges of what is recorded. Where a variable is but given
    its value, that it has become another says nothing of what was recorded."""
    edges, changed, given = [], set(), {}
    for side in (0, 1):
        for number in pair.runs[side].ids():
            one, group = pair.runs[side].definition(number), int(pair.group[side][number])
            if one["attrs"].get("edge"):
                edges.append((group, one))
            elif one["kind"] == "write" and pair.counts[side][group]:
                given.setdefault(one["variable"], set()).add(group)
                changed.update([] if one["op"] in OVERWRITES else [one["variable"]])
    changed.update(variable for variable, groups in given.items() if len(groups) > 1)  # which came last?
    return [(group, one["attrs"]["edge"] == "begin" or one["variable"] in changed) for group, one in edges]


def _runs_ahead(pair, group):
    """Is it chance how often this was recorded? Both runs must know it."""
    return min(int(pair.ids[side][group]) for side in (0, 1)) >= 0 \
        and bool(pair.definition(group)[1]["attrs"].get("ahead"))


def _places(pair):
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


def _lacking(pair, slots):
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
        found.append(((step, not alone[turn], number), Root("structure", side, definition, step, order, group, slot)))
    return [root for _, root in sorted(found, key=lambda one: one[0])[:1]]
