"""Which record began it: the earliest step, then the record whose inputs agree and whose output differs.

Everything is asked at one step only, the earliest that differs: before it all agrees, after it
everything may be a consequence. Rules that keep consequences from looking like causes:

- the value of an input is that of the same occurrence in this step (or the latest one before);
- a read of a variable has the writes since the last read as its inputs;
- an argument of a function body has the inputs of the call, and in a loop the rest of the body;
- a call has the records of the functions that it calls, be they Python's;
- an op that only passes on what it gets is no cause while anything that feeds it differs, nor is an iterator;
- where the two programs are wired differently, that is the cause.
"""

import numpy

from ..align.table import MISSING
from ..faults import CauseKind
from ..schema import traits
from ..schema.format import PYTHON
from .cause import Cause, in_graph, is_of_task, program_location
from .def_use import calls_python
from .inputs import InputGraph
from .reordered import Reordered
from .variable_writes import VariableWrites

MAX_CANDIDATES = 200000  # of the differing ones of a step
_COMPLETION_ORDER_TEXT = "it takes what tasks of a pool give as they end, and which of them is first is chance"


class Suspects(object):
    """The causes among the differing records of one step. slots: those records, ascending."""

    def __init__(self, pair, differs, step, slots):
        self._pair, self._differs = pair, differs
        self._slots = slots[numpy.argsort(pair.order[0][slots], kind="mergesort")][:MAX_CANDIDATES]
        self._groups = pair.groups_of(self._slots)
        self._feeds = InputGraph(pair, step)
        self._writes = VariableWrites(pair, differs, self._feeds)
        self._reordered = Reordered(pair, self._feeds)
        self._calls = _calls(pair.runs[0])
        self._bodies = self._differing_bodies()

    def find_causes(self):
        """Every cause of the step, in the order of the first run; the first difference if none stands out."""
        found, seen, reordered = [], set(), []
        for slot, group in zip(self._slots.tolist(), self._groups.tolist()):
            root = self._cause(slot, group)
            if root is None:
                continue
            if program_location(root) in seen:
                continue
            seen.add(program_location(root))
            (reordered if root.kind is CauseKind.ORDER else found).append(root)
        if not found and not reordered:
            slot, group = int(self._slots[0]), int(self._groups[0])
            found = [self._root(CauseKind.UNEXPLAINED, slot, group)]
        if found and reordered and all(in_graph(root.definition) for root in reordered):
            reordered = []  # a loop's iterations overtook each other: no cause beside a real one
        if any(root.kind is CauseKind.UNORDERED for root in found):
            reordered = []  # it comes of that
        return sorted(found + reordered, key=lambda root: root.order)

    def _cause(self, slot, group):
        _, definition = self._feeds.definition(slot, group)
        if definition["kind"] == "write":
            return None
        if self._has_other_inputs(slot, group):
            return self._root(CauseKind.STRUCTURE, slot, group)
        explained = self._explained(slot, group, definition)
        if explained == "values":
            return None
        if definition["kind"] in ("read", "random") and definition["variable"]:
            write = self._writes.latest(definition, self._feeds.order(slot))
            if any(self._writes.is_tainted(one) for one in self._writes.reaching(definition, write)):
                return None
            if write is not None and definition["kind"] == "read":
                racing = self._writes.unordered(definition)
                if any(self._writes.is_tainted(one) for one in racing):
                    return None  # it came before or after what differs itself
                if len(racing) == 1:
                    return self._root(CauseKind.UNORDERED, racing[0].slot, racing[0].group)
                if self._writes.is_plain_assignment(write, definition):
                    return self._root(CauseKind.UNRECORDED_WRITE, slot, group)
                return self._root(CauseKind.VALUE, write.slot, write.group)  # though all that went into it agrees
        if self._reordered(group, definition):
            return None if explained else self._root(CauseKind.ORDER, slot, group)
        if explained == "order" and not in_graph(definition):
            return None
        if self._consumes_completion_order(group, definition):
            return self._root(CauseKind.UNORDERED, slot, group, _COMPLETION_ORDER_TEXT)
        return self._explained_by_caller(definition) or self._root(CauseKind.VALUE, slot, group)

    def _consumes_completion_order(self, group, definition):
        """Does it get what tasks of a pool give, here of the one and there of another? What Python gives an op is not
        known of each record: all that it has got is looked at."""
        if in_graph(definition) or is_of_task(definition):
            return False
        given = [run.definition(up) for run, ids in zip(self._pair.runs, self._pair.ids) if ids[group] >= 0
                 for up in run.definition(int(ids[group]))["inputs"]]
        return len({one["thread"] for one in given if is_of_task(one)}) > 1

    def _explained_by_caller(self, definition):
        """Of a value that Python makes in a function that a graph calls: that call, where it puts out what differs."""
        if definition["op"] != PYTHON or not definition["function"]:
            return None
        for call in self._calls.get((definition["function"], definition["trace"]), ()):
            group = int(self._pair.group[0][call["id"]])
            first, end = self._feeds.slot_range(group)
            differing = numpy.flatnonzero(self._differs[first:end])
            if len(differing):
                return self._root(CauseKind.VALUE, first + int(differing[0]), group)
        return None

    def _explained(self, slot, group, definition):
        """"values" if something that feeds the record differs, "order" if only by order, else ""."""
        how = set()
        for feeding in self._feeds.input_slots(slot, group, definition):
            if self._differs[feeding]:
                other = int(self._pair.groups_of(feeding))
                how.add("order" if self._reordered(other, self._feeds.definition(feeding, other)[1]) else "values")
        before = self._feeds.order(slot) if calls_python(definition) else MISSING  # it may be called again in this step
        if any(self._bodies.get(body, MISSING) < before for body in self._feeds.sources(definition).bodies):
            how.add("values")
        if definition["kind"] == "argument" and self._argument_explained(slot, definition):
            how.add("values")
        if not in_graph(definition) and self._took_other_branch(slot, group):
            how.add("values")  # of which a structural cause tells
        forwards = traits.FORWARDS in definition["traits"] or definition["kind"] == "input"
        if forwards and (self._fed_by_difference(definition) or self._passed_in_difference(slot, definition)):
            how.add("values")
        return "values" if "values" in how else "order" if how else ""

    def _took_other_branch(self, slot, group):
        """Has either run made something in this step that may feed this, and that the other has not?"""
        pair, step = self._pair, int(self._pair.step[0][slot])
        for side in (0, 1):
            one = pair.runs[side].definition(int(pair.ids[side][group]), int(pair.order[side][slot]))
            for number in one["inputs"]:
                slots = pair.slots(int(pair.group[side][number]))
                if ((pair.order[1 - side][slots] == MISSING) & (pair.step[side][slots] == step)).any():
                    return True
        return False

    def _has_other_inputs(self, slot, group):
        """Do other outputs feed it in the second run? Eager values may come from anywhere: graphs only."""
        pair = self._pair
        numbers = [int(pair.ids[side][group]) for side in (0, 1)]
        definitions = [pair.runs[side].definition(numbers[side], int(pair.order[side][slot])) for side in (0, 1)]
        if not in_graph(definitions[0]):
            return False
        fed = [[int(pair.group[side][number]) for number in one["inputs"]] for side, one in enumerate(definitions)]
        return sorted(fed[0]) != sorted(fed[1])

    def _argument_explained(self, slot, definition):
        """Did what the caller passed in differ, or (in a loop) what the body made before?"""
        order = self._feeds.order(slot)
        walk, seen = [(definition["function"], definition["trace"])], set()
        while walk:
            body = walk.pop()
            if body in seen:
                continue
            seen.add(body)
            for call in self._calls.get(body, ()):
                if self._fed_by_difference(call):
                    return True
                if traits.LOOPS in call["traits"] and self._bodies.get(body, order) < order:
                    return True
                walk.extend((one["function"], one["trace"]) for one in self._feeds.sources(call).arguments)
        return False

    def _passed_in_difference(self, slot, definition):
        """Is it in a list, say, that a caller passed in?"""
        return any(self._argument_explained(slot, one) for one in self._feeds.sources(definition).arguments)

    def _fed_by_difference(self, definition):
        """Does any record of what feeds it differ in this step?"""
        sources = self._feeds.sources(definition)
        for number in sources.recorded + sources.before:
            first, end = self._feeds.slot_range(int(self._pair.group[0][number]))
            if self._differs[first:end].any():
                return True
        return False

    def _differing_bodies(self):
        """{(function, trace): earliest order} of the bodies in which something differs, callers included."""
        bodies = {}
        for slot, group in zip(self._slots.tolist(), self._groups.tolist()):
            _, one = self._feeds.definition(slot, group)
            body = (one["function"], one["trace"])
            bodies[body] = min(bodies.get(body, MISSING), self._feeds.order(slot))
        return bodies

    def _root(self, kind, slot, group, open_by=None):
        """open_by: why its order is open, in words."""
        side, definition = self._feeds.definition(slot, group)
        if open_by:
            definition = dict(definition, attrs=dict(definition["attrs"], unordered=open_by))
        step = int(self._pair.step[0][slot])
        return Cause(kind, side, definition, step, self._feeds.order(slot), group, slot)


def _calls(run):
    """{(function, trace): [definitions of the calls that run it]}."""
    calls = {}
    for number in run.ids():
        one = run.definition(number)
        for body in one["calls"]:
            calls.setdefault(tuple(body), []).append(one)
    return calls
