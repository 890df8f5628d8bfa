"""The writes into a variable that may come before a read of it.

A group holds the records of one definition, a slot the record of each run that correspond (align.table.AlignedPair).
"""

import collections

from ..schema import traits
from .cause import in_graph

Write = collections.namedtuple("Write", "order group slot")  # order: place of the record in the first run's file


def is_unordered_write(definition):
    """Return whether a graph may run this write, which is deterministic itself, before or after other uses."""
    return traits.ORDER_DEPENDENT in definition["traits"] and bool(definition["attrs"].get("unordered")) \
        and in_graph(definition)


def unordered_variables(run):
    """Return the variables that a graph may write before or after their other uses."""
    return {definition["variable"] for definition in map(run.definition, run.ids())
            if definition["kind"] == "write" and definition["attrs"].get("unordered")}


def reads_any_of(definition, run, variables):
    """Return whether the op reads one of these variables. A reference variable is read when it is used."""
    return any(producer["kind"] == "read" and producer["variable"] in variables
               for producer in map(run.definition, definition["inputs"]))


class VariableWrites(object):
    """The recorded writes into variables, up to one step of the first run.

    feeds: the inputs.InputGraph of the step; differs: a flag for each slot.
    """

    def __init__(self, pair, differs, feeds):
        self._run, self._differs, self._feeds = pair.runs[0], differs, feeds
        self._tainted = {}
        self._groups = {}  # (variable, replica): the groups that write it; None for all replicas
        self._states = {}  # variable: the group of its state where recording begins
        for number in pair.runs[0].ids():
            definition = pair.runs[0].definition(number)
            if definition["kind"] == "write" and definition["variable"]:
                for replica in (definition["replica"], None):
                    self._groups.setdefault((definition["variable"], replica), []).append(int(pair.group[0][number]))
            elif definition["attrs"].get("boundary") == "begin":
                self._states[definition["variable"]] = int(pair.group[0][number])

    def latest(self, definition, order):
        """Return the latest Write of this variable before a place in the file, or None."""
        writes = [Write(self._feeds.order(slot), group, slot)
                  for group in self._writing_groups(definition)
                  for slot in [self._feeds.latest(group, order)] if slot is not None]
        return max(writes) if writes else None

    def reaching(self, definition, latest):
        """Return the Writes that may come before this read. latest: the last of them in time, or None.

        The ops of a graph and the eager ops of a function that it calls have no order among each other.
        """
        writes = [] if latest is None else [latest]
        for group in self._writing_groups(definition):
            slots = range(*self._feeds.slot_range(group))
            if slots and in_graph(definition) != in_graph(self._feeds.definition(slots[0], group)):
                writes += [Write(self._feeds.order(slot), group, slot) for slot in slots]
        return writes

    def unordered(self, definition):
        """Return the Writes of this step that the graph may run before or after this read.

        A write that uses the value that was read comes after it. Uses inside of other functions are not followed.
        """
        writes, body = [], (definition["function"], definition["trace"])
        for group in self._writing_groups(definition) if in_graph(definition) else ():
            slots = range(*self._feeds.slot_range(group))
            write_definition = self._feeds.definition(slots[0], group) if slots else None
            if write_definition and is_unordered_write(write_definition):
                write = Write(self._feeds.order(slots[0]), group, slots[0])
                is_inner = (write_definition["function"], write_definition["trace"]) != body
                if not (self.is_tainted(write) if is_inner else self._feeds_write(definition, write_definition)):
                    writes.append(write)
        return writes

    def is_plain_assignment(self, write, definition):
        """Return whether a write only assigns the variable eagerly, and is its only recorded write."""
        assignment = self._feeds.definition(write.slot, write.group)
        return traits.OVERWRITES in assignment["traits"] and not in_graph(assignment) \
            and len(self._writing_groups(definition)) == 1 and bool(self._feeds.sources(assignment).recorded)

    def _feeds_write(self, definition, write):
        """Return whether the value of a definition is used by a write."""
        pending, visited = [write["id"]], set()
        while pending:
            number = pending.pop()
            if number == definition["id"]:
                return True
            if number not in visited:
                pending.extend(self._run.definition(number)["inputs"])
            visited.add(number)
        return False

    def _writing_groups(self, definition):
        """Return the groups that write a definition's variable; in any replica for a read at a recording's edge."""
        replica = None if definition["attrs"].get("boundary") else definition["replica"]
        return self._groups.get((definition["variable"], replica), ())

    def is_tainted(self, write):
        """Return whether an input of this write differs, or of the writes before it in this step."""
        if write not in self._tainted:
            self._tainted[write] = False  # ends the recursion in a cycle
            self._tainted[write] = self._is_tainted(write)
        return self._tainted[write]

    def _is_tainted(self, write):
        definition = self._feeds.definition(write.slot, write.group)
        if any(self._differs[slot] for slot in self._feeds.input_slots(write.slot, write.group, definition)):
            return True
        if any(self._differs[slot] for slot in self._state_before(definition)):
            return True
        previous = self.latest(definition, write.order) if self._feeds.in_step(write.slot) else None
        return previous is not None and self.is_tainted(previous)

    def _state_before(self, definition):
        """Return the slots of the state that a write changes, if it was there when recording began."""
        group = self._states.get(definition["variable"])
        if group is None or traits.OVERWRITES in definition["traits"]:
            return ()
        return range(*self._feeds.slot_range(group))
