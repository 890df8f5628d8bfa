"""What was written into a variable before it was read."""

import collections

from ..schema import traits
from .cause import in_graph

Write = collections.namedtuple("Write", "order group slot")


def is_unordered_write(definition):
    """Does a graph put this write, whose result is no chance, before other uses of its variable or after them?"""
    return traits.ORDER_DEPENDENT in definition["traits"] and bool(definition["attrs"].get("unordered")) \
        and in_graph(definition)


def unordered_variables(run):
    """The variables of which a graph leaves open whether a write comes before other uses, or after."""
    return {one["variable"] for one in map(run.definition, run.ids())
            if one["kind"] == "write" and one["attrs"].get("unordered")}


def reads_any_of(definition, run, variables):
    """Does it get one of these variables? A reference is read when it is used."""
    return any(one["kind"] == "read" and one["variable"] in variables
               for one in map(run.definition, definition["inputs"]))


class VariableWrites(object):
    """feeds: the inputs.InputGraph of the step; differs: a flag for each slot."""

    def __init__(self, pair, differs, feeds):
        self._run, self._differs, self._feeds = pair.runs[0], differs, feeds
        self._tainted = {}
        self._groups = {}  # (variable, replica): the groups that write it; None for all replicas
        self._states = {}  # variable: the group of its state where recording begins
        for number in pair.runs[0].ids():
            one = pair.runs[0].definition(number)
            if one["kind"] == "write" and one["variable"]:
                for replica in (one["replica"], None):
                    self._groups.setdefault((one["variable"], replica), []).append(int(pair.group[0][number]))
            elif one["attrs"].get("boundary") == "begin":
                self._states[one["variable"]] = int(pair.group[0][number])

    def latest(self, definition, order):
        """The latest Write of this variable before, or None."""
        latest = [Write(self._feeds.order(slot), group, slot)
                  for group in self._writing(definition)
                  for slot in [self._feeds.latest(group, order)] if slot is not None]
        return max(latest) if latest else None

    def reaching(self, definition, last):
        """The Writes that may have come before this read, the last by the clock among them: what a graph does and what
        runs eagerly in a function that it calls stand in no order."""
        found = [] if last is None else [last]
        for group in self._writing(definition):
            slots = range(*self._feeds.slot_range(group))
            if slots and in_graph(definition) != in_graph(self._feeds.definition(slots[0], group)[1]):
                found += [Write(self._feeds.order(slot), group, slot) for slot in slots]
        return found

    def unordered(self, definition):
        """The Writes of this step of which their graph leaves open whether they come before this read, or after. One
        that what is read goes into comes after; what goes through a function is not followed."""
        found, body = [], (definition["function"], definition["trace"])
        for group in self._writing(definition) if in_graph(definition) else ():
            slots = range(*self._feeds.slot_range(group))
            one = self._feeds.definition(slots[0], group)[1] if slots else None
            if one and is_unordered_write(one):
                write = Write(self._feeds.order(slots[0]), group, slots[0])
                inside = (one["function"], one["trace"]) != body
                if not (self.is_tainted(write) if inside else self._behind(definition, one)):
                    found.append(write)
        return found

    def is_plain_assignment(self, write, definition):
        """Does this write but give the variable that is read its value, eagerly, and is no other one recorded?"""
        _, one = self._feeds.definition(write.slot, write.group)
        return traits.OVERWRITES in one["traits"] and not in_graph(one) and len(self._writing(definition)) == 1 \
            and bool(self._feeds.sources(one).recorded)

    def _behind(self, definition, write):
        """Does it go into what is written?"""
        walk, seen = [write["id"]], set()
        while walk:
            number = walk.pop()
            if number == definition["id"]:
                return True
            if number not in seen:
                walk.extend(self._run.definition(number)["inputs"])
            seen.add(number)
        return False

    def _writing(self, definition):
        """The groups that write what is read or written here; at the edges of what is recorded whoever wrote it."""
        replica = None if definition["attrs"].get("boundary") else definition["replica"]
        return self._groups.get((definition["variable"], replica), ())

    def is_tainted(self, write):
        """Does anything that went into this write differ, or into the writes before it in this step?"""
        if write not in self._tainted:
            self._tainted[write] = False  # ends what would go in a circle
            self._tainted[write] = self._is_tainted(write)
        return self._tainted[write]

    def _is_tainted(self, write):
        _, definition = self._feeds.definition(write.slot, write.group)
        if any(self._differs[slot] for slot in self._feeds.input_slots(write.slot, write.group, definition)):
            return True
        if any(self._differs[slot] for slot in self._state_before(definition)):
            return True
        before = self.latest(definition, write.order) if self._feeds.in_step(write.slot) else None
        return before is not None and self.is_tainted(before)

    def _state_before(self, definition):
        """The slots of the state that a write changes, if it was there when recording began."""
        group = self._states.get(definition["variable"])
        if group is None or traits.OVERWRITES in definition["traits"]:
            return ()
        return range(*self._feeds.slot_range(group))
