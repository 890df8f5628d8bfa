"""Which record began it: the earliest step, then the record whose inputs agree and whose output differs.

Everything is asked at one step only, the earliest that differs: before it all agrees, after it
everything may be a consequence. Rules that keep consequences from looking like causes:

- the value of an input is that of the same occurrence in this step (or the latest one before);
- a read of a variable has the writes since the last read as its inputs;
- an argument of a function body has the inputs of the call, and in a loop the rest of the body;
- a call has the records of the functions that it calls;
- an op that only passes on what it gets is no cause while anything that feeds it differs;
- where the two programs are wired differently, that is the cause.
"""

import collections
import re

import numpy

from .align import MISSING
from .flow import Flow

RECORDS_LOOKED_AT = 200000  # of the differing ones of a step
ROOTS = 32
_PASSES_ON = frozenset("""Identity IdentityN Merge RefMerge Switch RefSwitch Enter RefEnter Exit RefExit NextIteration
    RefNextIteration LoopCond Reshape Squeeze ExpandDims Pack Unpack Shape ReadVariableOp StopGradient Snapshot
    PreventGradient CheckNumerics Print PrintV2 EnsureShape TensorListGetItem TensorListSetItem TensorListStack
    TensorListPopBack TensorListPushBack TensorListFromTensor TensorListGather TensorListConcat TensorListConcatV2
    TensorArrayReadV3 TensorArrayWriteV3 TensorArrayGatherV3 TensorArrayConcatV3 StackPopV2 QueueDequeueV2
    QueueDequeueManyV2 QueueDequeueUpToV2 OptionalGetValue Transpose Slice
    StridedSlice ConcatV2 Split Cast While StatelessWhile If StatelessIf Case StatelessCase PartitionedCall
    StatefulPartitionedCall""".split())
_NUMBER = re.compile(r"#\d+$")


class Root(object):
    """A cause. group, slot: its record (slot None: it has none of its own, a write); side: the run
    whose definition it is; kind: why it is one: "value", "structure", "order", "unexplained"."""

    def __init__(self, kind, side, definition, step, order, group, slot=None):
        self.kind = kind
        self.side = side
        self.definition = definition
        self.step = step
        self.order = order
        self.group = group
        self.slot = slot


class Verdict(object):
    """What a pair says. result: "same", "diverged", "structure"; roots: the first cause first.

    first_step: the earliest that differs, or None. differing, missing: numbers of records.
    reordered: keys whose values are the same in another order. strings: records of strings that differ
    and are no cause: see _only_names. steps: array of (step, records,
    differing). front: slots of the first differing step in the first run's order.
    """

    def __init__(self, pair):
        self.pair = pair
        self.roots = []
        self.first_step = None
        self.reordered = self.strings = 0
        self._flow = None
        self.differs, missing = _differences(pair)
        self.missing_slots = numpy.flatnonzero(missing)
        self.differing = int(numpy.count_nonzero(self.differs))
        self.missing = len(self.missing_slots)
        self._find()

    @property
    def result(self):
        if self.missing or any(root.kind == "structure" for root in self.roots):
            return "structure"
        return "diverged" if self.roots else "same"

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
        structural = _structural(self.pair, self.missing_slots)
        for step, slots in _by_step(self.pair, self.differs):
            if structural and structural[0].step < step:
                break
            found = Suspects(self.pair, self.differs, step, slots).roots()
            names = [root for root in found if self._only_names(root)]
            self.strings += len(names) and self._count_strings(slots)
            found = [root for root in found if root not in names]
            causes = [root for root in found if root.kind != "order" or not _in_graph(root.definition)]
            self.reordered += len(found) - len(causes)
            if causes:
                self.roots = causes
                break
        if structural and self.roots and structural[0].step > self.roots[0].step:
            structural = []  # a consequence; `missing` tells of it
        if structural:  # what is only wired otherwise is so because of what one run lacks
            self.roots = [root for root in self.roots if root.kind != "structure"]
        self.roots = sorted(self.roots + structural, key=lambda root: (root.step, root.order, root.kind))[:ROOTS]
        if self.roots:
            self.first_step = self.roots[0].step


    def _only_names(self, root):
        """Is it a string from which no number comes that differs: a temporary file's name, a handle?"""
        if root.definition["dtype"] != "string" or root.kind == "structure" or root.side:
            return False
        self._flow = self._flow or Flow(self.pair.runs[0])

        def differs(one):
            return self.pair.ever_differs(one["id"], 0)

        def passes(one):
            return not one["recorded"] or one["kind"] in ("write", "call") or differs(one)

        return not any(differs(one) and one["dtype"] != "string"
                       for one in self._flow.behind(root.definition, passes))

    def _count_strings(self, slots):
        groups, counts = numpy.unique(self.pair.groups_of(slots), return_counts=True)
        return sum(count for group, count in zip(groups.tolist(), counts.tolist())
                   if self.pair.definition(group)[1]["dtype"] == "string")


# What is behind a definition: ids of recorded inputs, function bodies that are called, definitions of arguments
# without records, and ids of inputs that were recorded in a loop's turn before.
_Sources = collections.namedtuple("_Sources", "recorded bodies arguments before")


class Suspects(object):
    """The causes among the differing records of one step. slots: those records, ascending."""

    def __init__(self, pair, differs, step, slots):
        self._pair, self._differs, self._step = pair, differs, step
        self._slots = slots[numpy.argsort(pair.order[0][slots], kind="mergesort")][:RECORDS_LOOKED_AT]
        self._ranges = {}
        self._inputs = {}
        self._tainted_writes = {}
        self._collectives = {}
        self._groups = pair.groups_of(self._slots)
        self._calls, self._writes = _callers_and_writers(pair)
        self._bodies = self._differing_bodies()

    def roots(self):
        """Every cause of the step, in the order of the first run; the first difference if none stands out."""
        found, seen, reordered = [], set(), []
        for slot, group in zip(self._slots.tolist(), self._groups.tolist()):
            root = self._cause(slot, group)
            if root is None:
                continue
            place = _place(root)
            if place in seen:
                continue
            seen.add(place)
            (reordered if root.kind == "order" else found).append(root)
        if not found and not reordered:
            slot, group = int(self._slots[0]), int(self._groups[0])
            found = [self._root("unexplained", slot, group)]
        if found and reordered and all(_in_graph(root.definition) for root in reordered):
            reordered = []  # a loop's iterations overtook each other: no cause beside a real one
        return sorted(found + reordered, key=lambda root: root.order)

    def _cause(self, slot, group):
        _, definition = self._definition(slot, group)
        if definition["kind"] == "write":
            return None
        if self._rewired(slot, group):
            return self._root("structure", slot, group)
        explained = self._explained(slot, group, definition)
        if explained == "values":
            return None
        if definition["kind"] in ("read", "random") and definition["variable"]:
            write = self._last_write(definition, int(self._pair.order[0][slot]))
            if write is not None and self._tainted(write):
                return None
            if write is not None and definition["kind"] == "read":
                return self._root_of_write(write)
        if self._reordered(group, definition):
            return None if explained else self._root("order", slot, group)
        if explained == "order" and not _in_graph(definition):
            return None
        return self._root("value", slot, group)

    def _explained(self, slot, group, definition):
        """"values" if something that feeds the record differs, "order" if only by order, else ""."""
        how = set()
        for feeding in self._feeding(slot, group, definition):
            if self._differs[feeding]:
                other = int(self._pair.groups_of(feeding))
                how.add("order" if self._reordered(other, self._definition(feeding, other)[1]) else "values")
        if any(body in self._bodies for body in self._bodies_behind(definition)):
            how.add("values")
        if definition["kind"] == "argument" and self._argument_explained(slot, definition):
            how.add("values")
        if definition["op"] in _PASSES_ON and (self._fed_by_difference(definition)
                                               or self._passed_in_difference(slot, definition)):
            how.add("values")
        return "values" if "values" in how else "order" if how else ""

    def _feeding(self, slot, group, definition):
        """The slots of the records that feed this one; past graph ops that left no record in this step."""
        in_graph = _in_graph(definition)
        walk, seen = list(self._recorded_inputs(definition)), set()
        while walk:
            number = walk.pop()
            if number in seen:
                continue
            seen.add(number)
            other = int(self._pair.group[0][number])
            found = self._slot_before(slot, group, other, in_graph)
            if in_graph and (found is None or int(self._pair.step[0][found]) != self._step):
                passed = self._pair.runs[0].definition(number)
                walk.extend(self._recorded_inputs(passed) if _in_graph(passed) else [])
            elif found is not None:
                yield found
        for number in self._sources(definition).before:
            found = self._latest(int(self._pair.group[0][number]), int(self._pair.order[0][slot]))
            if found is not None:
                yield found

    def _recorded_inputs(self, definition):
        """Ids (of the first run) of the nearest inputs that have records."""
        return self._sources(definition).recorded

    def _bodies_behind(self, definition):
        """The function bodies that it calls, or that made what it gets without a record (a list, a resource)."""
        return self._sources(definition).bodies

    def _sources(self, definition):
        """The _Sources of a definition."""
        if id(definition) in self._inputs:
            return self._inputs[id(definition)]
        run = self._pair.runs[0]
        found, arguments, seen, before = [], [], set(), []
        walk = [(number, False) for number in definition["inputs"]]
        bodies = [tuple(body) for body in definition["calls"]]
        while walk:
            number, earlier = walk.pop()
            if (number, earlier) in seen:
                continue
            seen.add((number, earlier))
            one = run.definition(number)
            if one["recorded"] and one["kind"] != "write":
                (before if earlier else found).append(number)
            else:
                earlier = earlier or one["op"] in ("NextIteration", "RefNextIteration")
                walk.extend((number, earlier) for number in one["inputs"])
                bodies += [tuple(body) for body in one["calls"]]
                arguments += [one] if one["kind"] == "argument" and not one["inputs"] else []
        self._inputs[id(definition)] = _Sources(found, bodies, arguments, before)
        return self._inputs[id(definition)]

    def _slot_before(self, slot, group, other, in_graph):
        """Which record of group `other` a record of `group` got.

        Eager records stand in the order of execution. Those of a graph may not, within one run of it.
        """
        mine, theirs = self._range(group), self._range(other)
        if in_graph and theirs[1] - theirs[0] == mine[1] - mine[0]:
            return theirs[0] + slot - mine[0]  # one for each
        if in_graph and theirs[1] - theirs[0] == 1:
            return theirs[0]  # from outside of the loop
        return self._latest(other, int(self._pair.order[0][slot]))

    def _latest(self, group, order):
        first = int(self._pair.first[group])
        column = self._pair.order[0][first:first + int(self._pair.counts[0][group])]
        before = int(numpy.searchsorted(column, order))
        return first + before - 1 if before else None

    def _range(self, group):
        """The slots of a group in this step, as (first, end)."""
        if group not in self._ranges:
            first = int(self._pair.first[group])
            steps = self._pair.step[0][first:first + int(self._pair.counts[0][group])]
            low, high = numpy.searchsorted(steps, [self._step, self._step + 1])
            self._ranges[group] = first + int(low), first + int(high)
        return self._ranges[group]

    def _rewired(self, slot, group):
        """Do other outputs feed it in the second run? Eager values may come from anywhere: graphs only."""
        pair = self._pair
        numbers = [int(pair.ids[side][group]) for side in (0, 1)]
        definitions = [pair.runs[side].definition(numbers[side], int(pair.order[side][slot])) for side in (0, 1)]
        if not _in_graph(definitions[0]):
            return False
        fed = [[int(pair.group[side][number]) for number in one["inputs"]] for side, one in enumerate(definitions)]
        return sorted(fed[0]) != sorted(fed[1])

    def _last_write(self, definition, order):
        """(order, group) of the latest write of this variable before, or None."""
        latest = [(int(self._pair.order[0][slot]), group)
                  for group in self._writes.get((definition["variable"], definition["replica"]), ())
                  for slot in [self._latest(group, order)] if slot is not None]
        return max(latest) if latest else None

    def _tainted(self, write):
        """Does anything that went into this write differ, or into the writes before it in this step?"""
        if write in self._tainted_writes:
            return self._tainted_writes[write]
        self._tainted_writes[write] = False  # ends what would go in a circle
        order, group = write
        slot = self._latest(group, order + 1)
        _, definition = self._definition(slot, group)
        tainted = any(self._differs[feeding] for feeding in self._feeding(slot, group, definition))
        if not tainted and int(self._pair.step[0][slot]) == self._step:
            before = self._last_write(definition, order)
            tainted = before is not None and self._tainted(before)
        self._tainted_writes[write] = tainted
        return tainted

    def _argument_explained(self, slot, definition):
        """Did what the caller passed in differ, or (in a loop) what the body made before?"""
        order = int(self._pair.order[0][slot])
        walk, seen = [(definition["function"], definition["trace"])], set()
        while walk:
            body = walk.pop()
            if body in seen:
                continue
            seen.add(body)
            for call in self._calls.get(body, ()):
                if self._fed_by_difference(call):
                    return True
                if call["op"] in ("While", "StatelessWhile") and self._bodies.get(body, order) < order:
                    return True
                walk.extend((one["function"], one["trace"]) for one in self._sources(call).arguments)
        return False

    def _passed_in_difference(self, slot, definition):
        """Is it in a list, say, that a caller passed in?"""
        return any(self._argument_explained(slot, one) for one in self._sources(definition).arguments)

    def _fed_by_difference(self, definition):
        """Does any record of what feeds it differ in this step?"""
        for number in self._recorded_inputs(definition) + self._sources(definition).before:
            first, end = self._range(int(self._pair.group[0][number]))
            if self._differs[first:end].any():
                return True
        return False

    def _reordered(self, group, definition):
        """Are the values of this key (eager: of this line) the same in this step, in another order?"""
        line = group if _in_graph(definition) else _line_of(definition)
        if line not in self._collectives:
            groups = [group]
            if not _in_graph(definition):
                groups = [other for other in self._same_line(definition)]
            self._collectives[line] = self._permuted(groups)
        return self._collectives[line]

    def _same_line(self, definition):
        if not hasattr(self, "_lines"):
            self._lines = {}
            for group in range(len(self._pair.keys)):
                _, one = self._pair.definition(group)
                if not _in_graph(one):
                    self._lines.setdefault(_line_of(one), []).append(group)
        return self._lines[_line_of(definition)]

    def _permuted(self, groups):
        pair = self._pair
        slots = numpy.concatenate([numpy.arange(*self._range(group)) for group in groups]).astype(numpy.int64)
        if len(slots) < 2 or (pair.order[1][slots] == MISSING).any():
            return False
        left, right = (numpy.sort(pair.value[side][slots]) for side in (0, 1))
        return bool((left == right).all() and left[0] != left[-1])

    def _differing_bodies(self):
        """{(function, trace): earliest order} of the bodies in which something differs, callers included."""
        bodies = {}
        for slot, group in zip(self._slots.tolist(), self._groups.tolist()):
            _, one = self._definition(slot, group)
            body = (one["function"], one["trace"])
            bodies[body] = min(bodies.get(body, MISSING), int(self._pair.order[0][slot]))
        return bodies

    def _definition(self, slot, group):
        return self._pair.definition(group, int(self._pair.order[0][slot]))

    def _root(self, kind, slot, group):
        side, definition = self._definition(slot, group)
        return Root(kind, side, definition, self._step, int(self._pair.order[0][slot]), group, slot)

    def _root_of_write(self, write):
        """The write itself did it, though all that went into it agrees."""
        order, group = write
        slot = self._latest(group, order + 1)
        side, definition = self._definition(slot, group)
        return Root("value", side, definition, int(self._pair.step[0][slot]), order, group, slot)


def _in_graph(definition):
    """Is it an op of a graph, whose wiring is fixed, and not one that ran eagerly?"""
    return not (definition["function"] == "" and _NUMBER.search(definition["node"]) and "@" in definition["node"])


def _line_of(definition):
    """What eager records of one line of the program share."""
    return (definition["thread"], definition["replica"], _NUMBER.sub("", definition["node"]), definition["output"])


def _place(root):
    """Several outputs of one op, or turns of one line, are one cause."""
    one = root.definition
    return (one["function"], one["trace"], _NUMBER.sub("", one["node"]), one["replica"], one["thread"])


def _differences(pair):
    """(differs, missing): a flag for each slot."""
    have = [order != MISSING for order in pair.order]
    differs = have[0] & have[1]
    differs &= pair.value[0] != pair.value[1]
    missing = have[0] != have[1]
    for side in (0, 1):
        run = pair.runs[side]
        if not run.whole:  # what a killed program did not come to is no difference
            last = int(pair.step[side][have[side]].max()) if have[side].any() else -1
            missing &= have[side] | (pair.step[1 - side] < last)
    slots = numpy.flatnonzero(missing)
    groups = pair.groups_of(slots)
    ahead = [group for group in numpy.unique(groups).tolist() if _runs_ahead(pair, group)]
    missing[slots[numpy.isin(groups, ahead)]] = False
    return differs, missing


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


def _structural(pair, slots):
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


def _callers_and_writers(pair):
    """({(function, trace): [definitions of calls]}, {(variable, replica): [groups that write it]})."""
    calls, writes = {}, {}
    run = pair.runs[0]
    for number in run.ids():
        one, group = run.definition(number), int(pair.group[0][number])
        for body in one["calls"]:
            calls.setdefault(tuple(body), []).append(one)
        if one["kind"] == "write" and one["variable"]:
            writes.setdefault((one["variable"], one["replica"]), []).append(group)
    return calls, writes
