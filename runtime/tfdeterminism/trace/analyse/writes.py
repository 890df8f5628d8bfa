"""What was written into a variable before it was read."""

import collections

from .root import in_graph

OVERWRITES = frozenset("Assign AssignVariableOp".split())

Write = collections.namedtuple("Write", "order group slot")


class Writes(object):
    """feeds: the feeds.Feeds of the step; differs: a flag for each slot."""

    def __init__(self, pair, differs, feeds):
        self._differs, self._feeds = differs, feeds
        self._tainted = {}
        self._groups = {}  # (variable, replica): the groups that write it; None for all replicas
        self._states = {}  # variable: the group of its state where recording begins
        for number in pair.runs[0].ids():
            one = pair.runs[0].definition(number)
            if one["kind"] == "write" and one["variable"]:
                for replica in (one["replica"], None):
                    self._groups.setdefault((one["variable"], replica), []).append(int(pair.group[0][number]))
            elif one["attrs"].get("edge") == "begin":
                self._states[one["variable"]] = int(pair.group[0][number])

    def last(self, definition, order):
        """The latest Write of this variable before, or None."""
        latest = [Write(self._feeds.order(slot), group, slot)
                  for group in self._writing(definition)
                  for slot in [self._feeds.latest(group, order)] if slot is not None]
        return max(latest) if latest else None

    def before(self, definition, last):
        """The Writes that may have come before this read, the last by the clock among them: what a graph does and what
        runs eagerly in a function that it calls stand in no order."""
        found = [] if last is None else [last]
        for group in self._writing(definition):
            slots = range(*self._feeds.range(group))
            if slots and in_graph(definition) != in_graph(self._feeds.definition(slots[0], group)[1]):
                found += [Write(self._feeds.order(slot), group, slot) for slot in slots]
        return found

    def _writing(self, definition):
        """The groups that write what is read or written here; at the edges of what is recorded whoever wrote it."""
        replica = None if definition["attrs"].get("edge") else definition["replica"]
        return self._groups.get((definition["variable"], replica), ())

    def tainted(self, write):
        """Does anything that went into this write differ, or into the writes before it in this step?"""
        if write not in self._tainted:
            self._tainted[write] = False  # ends what would go in a circle
            self._tainted[write] = self._is_tainted(write)
        return self._tainted[write]

    def _is_tainted(self, write):
        _, definition = self._feeds.definition(write.slot, write.group)
        if any(self._differs[slot] for slot in self._feeds.slots(write.slot, write.group, definition)):
            return True
        if any(self._differs[slot] for slot in self._state_before(definition)):
            return True
        before = self.last(definition, write.order) if self._feeds.in_step(write.slot) else None
        return before is not None and self.tainted(before)

    def _state_before(self, definition):
        """The slots of the state that a write changes, if it was there when recording began."""
        group = self._states.get(definition["variable"])
        return () if group is None or definition["op"] in OVERWRITES else range(*self._feeds.range(group))
