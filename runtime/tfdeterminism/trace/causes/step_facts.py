"""What the dismissals ask about the causes of one step."""

import numpy

from .def_use import DefUseGraph
from .variable_writes import unordered_variables


class PairFlows(object):
    """The flows of two runs, made when they are first asked for. pair: an align.table.AlignedPair; differs: a flag
    for each slot."""

    def __init__(self, pair, differs):
        self.pair, self.differs = pair, differs
        self._flows, self._unordered = {}, None

    def flow(self, side):
        """The DefUseGraph of one run."""
        if side not in self._flows:
            self._flows[side] = DefUseGraph(self.pair.runs[side])
        return self._flows[side]

    @property
    def unordered_variables(self):
        """Those of the first run of which a graph leaves open whether a write comes before other uses, or after."""
        if self._unordered is None:
            self._unordered = unordered_variables(self.pair.runs[0])
        return self._unordered


class StepFacts(object):
    """Of one step. shared: a PairFlows; slots: of the records that differ in it; paths_differ: do the runs do other
    things from this step on?"""

    def __init__(self, shared, step, slots, paths_differ):
        self.pair, self.step, self.slots, self.paths_differ = shared.pair, step, slots, paths_differ
        self._shared = shared

    def flow(self, side=0):
        """The DefUseGraph of one run."""
        return self._shared.flow(side)

    @property
    def unordered_variables(self):
        return self._shared.unordered_variables

    def differs(self, slot):
        return bool(self._shared.differs[slot])

    def differs_now(self, one):
        """Does a record of this definition (of the first run) differ in this step?"""
        slots = self.slots_of(one)
        return bool((self._shared.differs[slots] & (self.pair.step[0][slots] == self.step)).any())

    def slots_of(self, one):
        """All slots of a definition of the first run, ascending."""
        part = self.pair.slots(int(self.pair.group[0][one["id"]]))
        return numpy.arange(part.start, part.stop)

    def count(self, holds):
        """How many of the step's differing records are of a definition of which this holds."""
        groups, counts = numpy.unique(self.pair.groups_of(self.slots), return_counts=True)
        return sum(count for group, count in zip(groups.tolist(), counts.tolist())
                   if holds(self.pair.definition(group)[1]))
