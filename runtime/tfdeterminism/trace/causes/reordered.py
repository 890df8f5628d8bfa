"""Finds values that both runs have in the same step, in another order."""

import numpy

from ..align.table import MISSING
from .cause import in_graph, line_key


class Reordered(object):
    """Called for the key of a record; for an eager op it looks at all keys of the same line of the program.

    pair: an align.table.AlignedPair; inputs: the inputs.InputGraph of the step.
    """

    def __init__(self, pair, inputs):
        self._pair, self._inputs = pair, inputs
        self._known, self._lines = {}, None

    def __call__(self, group, definition):
        """Do both runs have the same values of this key (or line) in this step, in another order?"""
        inside = in_graph(definition)
        line = group if inside else line_key(definition)
        if line not in self._known:
            self._known[line] = self.is_permutation([group] if inside else self._same_line(line))
        return self._known[line]

    def _same_line(self, line):
        if self._lines is None:
            self._lines = {}
            for group in range(len(self._pair.keys)):
                _, one = self._pair.definition(group)
                if not in_graph(one):
                    self._lines.setdefault(line_key(one), []).append(group)
        return self._lines[line]

    def is_permutation(self, groups):
        pair = self._pair
        ranges = [numpy.arange(*self._inputs.slot_range(group)) for group in groups]
        slots = numpy.concatenate(ranges).astype(numpy.int64)
        if len(slots) < 2 or (pair.order[1][slots] == MISSING).any():
            return False
        left, right = (numpy.sort(pair.value[side][slots]) for side in (0, 1))
        return bool((left == right).all() and left[0] != left[-1])
