"""Which records feed a record, in one step of the first run."""

import collections

import numpy

from ..schema import traits
from .cause import in_graph

# What is behind a definition: ids (of the first run) of the nearest inputs that have records; function bodies that it
# calls, or that made what it gets without a record (a list, a resource); definitions of arguments without records; and
# ids of inputs that were recorded in a loop's turn before.
Sources = collections.namedtuple("Sources", "recorded bodies arguments before")


class InputGraph(object):
    """pair: a table.AlignedPair; step: at which all is asked."""

    def __init__(self, pair, step):
        self._pair, self._step = pair, step
        self._ranges, self._sources = {}, {}

    def definition(self, slot, group):
        """(side, definition) of a group when this record was made."""
        return self._pair.definition(group, self.order(slot))

    def order(self, slot):
        return int(self._pair.order[0][slot])

    def in_step(self, slot):
        return int(self._pair.step[0][slot]) == self._step

    def input_slots(self, slot, group, definition):
        """The slots of the records that feed this one; past graph ops that left no record in this step."""
        inside = in_graph(definition)
        walk, seen = list(self.sources(definition).recorded), set()
        while walk:
            number = walk.pop()
            if number in seen:
                continue
            seen.add(number)
            other = int(self._pair.group[0][number])
            found = self._slot_before(slot, group, other, inside)
            if inside and (found is None or not self.in_step(found)):
                passed = self._pair.runs[0].definition(number)
                walk.extend(self.sources(passed).recorded if in_graph(passed) else [])
            elif found is not None:
                yield found
        for number in self.sources(definition).before:
            found = self.latest(int(self._pair.group[0][number]), self.order(slot))
            if found is not None:
                yield found

    def sources(self, definition):
        """The Sources of a definition."""
        if id(definition) not in self._sources:
            self._sources[id(definition)] = self._find_sources(definition)
        return self._sources[id(definition)]

    def _find_sources(self, definition):
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
                earlier = earlier or traits.NEXT_ITERATION in one["traits"]
                walk.extend((number, earlier) for number in one["inputs"])
                bodies += [tuple(body) for body in one["calls"]]
                arguments += [one] if one["kind"] == "argument" and not one["inputs"] else []
        return Sources(found, bodies, arguments, before)

    def _slot_before(self, slot, group, other, inside):
        """Which record of group `other` a record of `group` got.

        Eager records stand in the order of execution. Those of a graph may not, within one run of it.
        """
        mine, theirs = self.slot_range(group), self.slot_range(other)
        if inside and theirs[1] - theirs[0] == mine[1] - mine[0]:
            return theirs[0] + slot - mine[0]  # one for each
        if inside and theirs[1] - theirs[0] == 1:
            return theirs[0]  # from outside of the loop
        return self.latest(other, self.order(slot))

    def latest(self, group, order):
        """The slot of a group's last record before this place in the file, or None."""
        first, column = self._column(self._pair.order, group)
        before = int(numpy.searchsorted(column, order))
        return first + before - 1 if before else None

    def slot_range(self, group):
        """The slots of a group in this step, as (first, end)."""
        if group not in self._ranges:
            first, steps = self._column(self._pair.step, group)
            low, high = numpy.searchsorted(steps, [self._step, self._step + 1])
            self._ranges[group] = first + int(low), first + int(high)
        return self._ranges[group]

    def _column(self, columns, group):
        """(first slot, values) of a group's records in the first run."""
        first = int(self._pair.first_slot[group])
        return first, columns[0][first:first + int(self._pair.record_counts[0][group])]
