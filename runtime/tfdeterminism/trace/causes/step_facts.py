"""Facts about one step that decide whether a difference is dismissed as a mere consequence of another one.

A record is one execution of a definition, which is what a trace says once of an op or value. A slot is an index into
the aligned records of two runs; a group has the slots of one definition.
"""

import numpy

from .def_use import DefUseGraph
from .variable_writes import unordered_variables


class PairFlows(object):
    """The def-use graphs of two runs, built at their first use.

    pair: an align.table.AlignedPair; differs: a flag for each slot.
    """

    def __init__(self, pair, differs):
        self.pair, self.differs = pair, differs
        self._flows, self._unordered = {}, None

    def flow(self, side):
        """Return the DefUseGraph of one run."""
        if side not in self._flows:
            self._flows[side] = DefUseGraph(self.pair.runs[side])
        return self._flows[side]

    @property
    def unordered_variables(self):
        """The variables of the first run that a graph may write before or after their other uses."""
        if self._unordered is None:
            self._unordered = unordered_variables(self.pair.runs[0])
        return self._unordered


class StepFacts(object):
    """The facts about one step.

    shared: a PairFlows; slots: of the records that differ in the step; paths_differ: whether the runs execute
    different ops from this step on.
    """

    def __init__(self, shared, step, slots, paths_differ):
        self.pair, self.step, self.slots, self.paths_differ = shared.pair, step, slots, paths_differ
        self._shared = shared

    def flow(self, side=0):
        """Return the DefUseGraph of one run."""
        return self._shared.flow(side)

    @property
    def unordered_variables(self):
        return self._shared.unordered_variables

    def differs(self, slot):
        return bool(self._shared.differs[slot])

    def differs_now(self, definition):
        """Return whether a record of this definition (of the first run) differs in this step."""
        slots = self.slots_of(definition)
        return bool((self._shared.differs[slots] & (self.pair.step[0][slots] == self.step)).any())

    def slots_of(self, definition):
        """Return all slots of a definition of the first run, ascending."""
        slots = self.pair.slots(int(self.pair.group[0][definition["id"]]))
        return numpy.arange(slots.start, slots.stop)

    def count_differing(self, holds):
        """Return how many of the step's differing records have a definition for which `holds` is true."""
        groups, counts = numpy.unique(self.pair.groups_of(self.slots), return_counts=True)
        return sum(count for group, count in zip(groups.tolist(), counts.tolist())
                   if holds(self.pair.definition(group)[1]))
