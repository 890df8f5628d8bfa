"""The graph of which records feed a record, in one step of the first run.

A group holds the records of one definition, a slot the record of each run that correspond (align.table.AlignedPair).
"""

import collections

import numpy

from ..schema import traits
from .cause import in_graph

# Where the inputs of a definition come from. recorded: ids (in the first run) of the nearest inputs that have records;
# bodies: functions that it calls, or that made an input without a record (a list, a resource); arguments: definitions
# of arguments without records; before: ids of inputs that were recorded in an earlier iteration of a loop.
Sources = collections.namedtuple("Sources", "recorded bodies arguments before")


class InputGraph(object):
    """The records that feed each record of one step. pair: a table.AlignedPair; step: the number of the step."""

    def __init__(self, pair, step):
        self._pair, self._step = pair, step
        self._ranges, self._sources = {}, {}

    def definition(self, slot, group):
        """Return the definition of a group at the time of this record."""
        _, definition = self.side_and_definition(slot, group)
        return definition

    def side_and_definition(self, slot, group):
        """Return (index of the run that has the definition, definition of the group at the time of this record)."""
        return self._pair.definition(group, self.order(slot))

    def order(self, slot):
        """Return the place of this record in the first run's file."""
        return int(self._pair.order[0][slot])

    def in_step(self, slot):
        return int(self._pair.step[0][slot]) == self._step

    def input_slots(self, slot, group, definition):
        """Yield the slots of the records that feed a record, past graph ops without a record in this step."""
        is_in_graph = in_graph(definition)
        pending, visited = list(self.sources(definition).recorded), set()
        while pending:
            number = pending.pop()
            if number in visited:
                continue
            visited.add(number)
            input_group = int(self._pair.group[0][number])
            input_slot = self._slot_before(slot, group, input_group, is_in_graph)
            if is_in_graph and (input_slot is None or not self.in_step(input_slot)):
                producer = self._pair.runs[0].definition(number)
                pending.extend(self.sources(producer).recorded if in_graph(producer) else [])
            elif input_slot is not None:
                yield input_slot
        for number in self.sources(definition).before:
            input_slot = self.latest(int(self._pair.group[0][number]), self.order(slot))
            if input_slot is not None:
                yield input_slot

    def sources(self, definition):
        """Return the Sources of a definition."""
        if id(definition) not in self._sources:
            self._sources[id(definition)] = self._find_sources(definition)
        return self._sources[id(definition)]

    def _find_sources(self, definition):
        run = self._pair.runs[0]
        recorded, arguments, visited, previous = [], [], set(), []
        pending = [(number, False) for number in definition["inputs"]]
        bodies = [tuple(body) for body in definition["calls"]]
        while pending:
            number, is_previous = pending.pop()
            if (number, is_previous) in visited:
                continue
            visited.add((number, is_previous))
            producer = run.definition(number)
            if producer["recorded"] and producer["kind"] != "write":
                (previous if is_previous else recorded).append(number)
            else:
                is_previous = is_previous or traits.NEXT_ITERATION in producer["traits"]
                pending.extend((number, is_previous) for number in producer["inputs"])
                bodies += [tuple(body) for body in producer["calls"]]
                arguments += [producer] if producer["kind"] == "argument" and not producer["inputs"] else []
        return Sources(recorded, bodies, arguments, previous)

    def _slot_before(self, slot, group, input_group, is_in_graph):
        """Return the slot of the record of `input_group` that a record of `group` used.

        Eager records stand in the order of execution. Those of a graph may not, within one run of it.
        """
        own_range, input_range = self.slot_range(group), self.slot_range(input_group)
        if is_in_graph and input_range[1] - input_range[0] == own_range[1] - own_range[0]:
            return input_range[0] + slot - own_range[0]  # one input record for each record
        if is_in_graph and input_range[1] - input_range[0] == 1:
            return input_range[0]  # the input lies outside of the loop
        return self.latest(input_group, self.order(slot))

    def latest(self, group, order):
        """Return the slot of a group's last record before this place in the file, or None."""
        first, column = self._column(self._pair.order, group)
        count = int(numpy.searchsorted(column, order))
        return first + count - 1 if count else None

    def slot_range(self, group):
        """Return the slots of a group in this step, as (first, end)."""
        if group not in self._ranges:
            first, steps = self._column(self._pair.step, group)
            begin, end = numpy.searchsorted(steps, [self._step, self._step + 1])
            self._ranges[group] = first + int(begin), first + int(end)
        return self._ranges[group]

    def _column(self, columns, group):
        """Return (first slot, values) of a group's records in the first run."""
        first = int(self._pair.first_slot[group])
        return first, columns[0][first:first + int(self._pair.record_counts[0][group])]
