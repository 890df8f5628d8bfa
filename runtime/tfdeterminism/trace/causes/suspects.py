"""The causes of a step: the records whose inputs agree in both runs and whose output differs.

Only the earliest step that differs is examined: before it everything agrees, after it everything may be a consequence.
These rules keep consequences from looking like causes:

- the value of an input is that of the same occurrence in this step (or the latest one before);
- a read of a variable has the writes since the last read as its inputs;
- an argument of a function body has the inputs of the call, and in a loop the rest of the body;
- a call has the records of the functions that it calls, Python functions included;
- an op that only passes its input on is not a cause while anything that feeds it differs, nor is an iterator;
- where the graphs of the two programs are wired differently, the wiring is the cause.
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

MAX_CANDIDATES = 200000  # differing records of a step that are examined
_COMPLETION_ORDER_TEXT = "it takes what tasks of a pool give as they end, and which of them is first is chance"


class Suspects(object):
    """The causes among the differing records of one step.

    pair: an align.table.AlignedPair. A slot is one of its rows: a record and its counterpart in the other run; a group
    is the range of slots of one definition. differs: a flag for each slot; slots: those that differ in this step,
    ascending.
    """

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
        """Return all causes of the step in the first run's order, or the first difference if there is no cause."""
        causes, locations, reordered = [], set(), []
        for slot, group in zip(self._slots.tolist(), self._groups.tolist()):
            root = self._cause(slot, group)
            if root is None:
                continue
            if program_location(root) in locations:
                continue
            locations.add(program_location(root))
            (reordered if root.kind is CauseKind.ORDER else causes).append(root)
        if not causes and not reordered:
            slot, group = int(self._slots[0]), int(self._groups[0])
            causes = [self._root(CauseKind.UNEXPLAINED, slot, group)]
        if causes and reordered and all(in_graph(root.definition) for root in reordered):
            reordered = []  # a loop's iterations overtook each other: no cause beside a real one
        if any(root.kind is CauseKind.UNORDERED for root in causes):
            reordered = []  # the unordered op explains the order
        return sorted(causes + reordered, key=lambda root: root.order)

    def _cause(self, slot, group):
        """Return the Cause that a differing record is, or None if it is a consequence."""
        definition = self._feeds.definition(slot, group)
        if definition["kind"] == "write":
            return None
        if self._has_other_inputs(slot, group):
            return self._root(CauseKind.STRUCTURE, slot, group)
        explained = self._explained(slot, group, definition)
        if explained == "values":
            return None
        if definition["kind"] in ("read", "random") and definition["variable"]:
            write = self._writes.latest(definition, self._feeds.order(slot))
            if any(self._writes.is_tainted(previous) for previous in self._writes.reaching(definition, write)):
                return None
            if write is not None and definition["kind"] == "read":
                racing = self._writes.unordered(definition)
                if any(self._writes.is_tainted(race) for race in racing):
                    return None  # the read came before or after a write of a value that differs itself
                if len(racing) == 1:
                    return self._root(CauseKind.UNORDERED, racing[0].slot, racing[0].group)
                if self._writes.is_plain_assignment(write, definition):
                    return self._root(CauseKind.UNRECORDED_WRITE, slot, group)
                return self._root(CauseKind.VALUE, write.slot, write.group)  # the inputs of the write agree
        if self._reordered(group, definition):
            return None if explained else self._root(CauseKind.ORDER, slot, group)
        if explained == "order" and not in_graph(definition):
            return None
        if self._consumes_completion_order(group, definition):
            return self._root(CauseKind.UNORDERED, slot, group, _COMPLETION_ORDER_TEXT)
        return self._explained_by_caller(definition) or self._root(CauseKind.VALUE, slot, group)

    def _consumes_completion_order(self, group, definition):
        """Return whether an op consumes results of different tasks of a pool in the two runs.

        The inputs that Python gives an op are not known for each record: all inputs of the definition are compared.
        """
        if in_graph(definition) or is_of_task(definition):
            return False
        producers = [run.definition(up) for run, ids in zip(self._pair.runs, self._pair.ids) if ids[group] >= 0
                     for up in run.definition(int(ids[group]))["inputs"]]
        return len({producer["thread"] for producer in producers if is_of_task(producer)}) > 1

    def _explained_by_caller(self, definition):
        """Return the Cause at the graph's call of the Python function that made a value, or None."""
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
        """Return "values" if a record that feeds this one differs, "order" if only in its order, else ""."""
        explanations = set()
        for feeding in self._feeds.input_slots(slot, group, definition):
            if self._differs[feeding]:
                feeder = int(self._pair.groups_of(feeding))
                is_reordered = self._reordered(feeder, self._feeds.definition(feeding, feeder))
                explanations.add("order" if is_reordered else "values")
        latest = self._feeds.order(slot) if calls_python(definition) else MISSING  # it may be called again in this step
        if any(self._bodies.get(body, MISSING) < latest for body in self._feeds.sources(definition).bodies):
            explanations.add("values")
        if definition["kind"] == "argument" and self._is_argument_explained(slot, definition):
            explanations.add("values")
        if not in_graph(definition) and self._has_other_branch(slot, group):
            explanations.add("values")
        forwards = traits.FORWARDS in definition["traits"] or definition["kind"] == "input"
        if forwards and (self._is_fed_by_difference(definition) or self._has_differing_container(slot, definition)):
            explanations.add("values")
        return "values" if "values" in explanations else "order" if explanations else ""

    def _has_other_branch(self, slot, group):
        """Return whether a possible input of this record was made in this step by one run only."""
        pair, step = self._pair, int(self._pair.step[0][slot])
        for side in (0, 1):
            definition = pair.runs[side].definition(int(pair.ids[side][group]), int(pair.order[side][slot]))
            for number in definition["inputs"]:
                slots = pair.slots(int(pair.group[side][number]))
                if ((pair.order[1 - side][slots] == MISSING) & (pair.step[side][slots] == step)).any():
                    return True
        return False

    def _has_other_inputs(self, slot, group):
        """Return whether other outputs feed this op of a graph in the second run. Eager ops are not checked."""
        pair = self._pair
        numbers = [int(pair.ids[side][group]) for side in (0, 1)]
        definitions = [pair.runs[side].definition(numbers[side], int(pair.order[side][slot])) for side in (0, 1)]
        if not in_graph(definitions[0]):
            return False
        inputs = [sorted(int(pair.group[side][number]) for number in definition["inputs"])
                  for side, definition in enumerate(definitions)]
        return inputs[0] != inputs[1]

    def _is_argument_explained(self, slot, definition):
        """Return whether the caller's input differs, or, in a loop, a value of an earlier iteration."""
        order = self._feeds.order(slot)
        pending, visited = [(definition["function"], definition["trace"])], set()
        while pending:
            body = pending.pop()
            if body in visited:
                continue
            visited.add(body)
            for call in self._calls.get(body, ()):
                if self._is_fed_by_difference(call):
                    return True
                if traits.LOOPS in call["traits"] and self._bodies.get(body, order) < order:
                    return True
                arguments = self._feeds.sources(call).arguments
                pending.extend((argument["function"], argument["trace"]) for argument in arguments)
        return False

    def _has_differing_container(self, slot, definition):
        """Return whether a difference came in through a container, such as a list, that a caller passed."""
        arguments = self._feeds.sources(definition).arguments
        return any(self._is_argument_explained(slot, argument) for argument in arguments)

    def _is_fed_by_difference(self, definition):
        """Return whether any record that feeds this definition differs in this step."""
        sources = self._feeds.sources(definition)
        for number in sources.recorded + sources.before:
            first, end = self._feeds.slot_range(int(self._pair.group[0][number]))
            if self._differs[first:end].any():
                return True
        return False

    def _differing_bodies(self):
        """Return {(function, trace): earliest order} of the function bodies in which a record differs."""
        bodies = {}
        for slot, group in zip(self._slots.tolist(), self._groups.tolist()):
            definition = self._feeds.definition(slot, group)
            body = (definition["function"], definition["trace"])
            bodies[body] = min(bodies.get(body, MISSING), self._feeds.order(slot))
        return bodies

    def _root(self, kind, slot, group, open_by=None):
        """Return the Cause of a kind at a slot. open_by: why the op's order is undefined, in words."""
        side, definition = self._feeds.side_and_definition(slot, group)
        if open_by:
            definition = dict(definition, attrs=dict(definition["attrs"], unordered=open_by))
        step = int(self._pair.step[0][slot])
        return Cause(kind, side, definition, step, self._feeds.order(slot), group, slot)


def _calls(run):
    """Return {(function, trace): [definitions of the calls that run it]}."""
    calls = {}
    for number in run.ids():
        definition = run.definition(number)
        for body in definition["calls"]:
            calls.setdefault(tuple(body), []).append(definition)
    return calls
