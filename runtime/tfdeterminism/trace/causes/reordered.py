"""The detection of values that both runs have in the same step, in another order."""

import numpy

from ..align.table import MISSING
from .cause import in_graph, line_key


class Reordered(object):
    """A predicate on the key of a record; for an eager op it examines all keys of the same line of the program.

    pair: an align.table.AlignedPair, in which a group holds the records of one definition (of one key); inputs: the
    inputs.InputGraph of the step, which knows the range of a group's slots in it.
    """

    def __init__(self, pair, inputs):
        self._pair, self._inputs = pair, inputs
        self._known, self._lines = {}, None

    def __call__(self, group, definition):
        """Return whether both runs have the same values of this key (or line) in this step, in another order."""
        is_in_graph = in_graph(definition)
        key = group if is_in_graph else line_key(definition)
        if key not in self._known:
            self._known[key] = self.is_permutation([group] if is_in_graph else self._same_line(key))
        return self._known[key]

    def _same_line(self, line):
        if self._lines is None:
            self._lines = {}
            for group in range(len(self._pair.keys)):
                _, definition = self._pair.definition(group)
                if not in_graph(definition):
                    self._lines.setdefault(line_key(definition), []).append(group)
        return self._lines[line]

    def is_permutation(self, groups):
        pair = self._pair
        ranges = [numpy.arange(*self._inputs.slot_range(group)) for group in groups]
        slots = numpy.concatenate(ranges).astype(numpy.int64)
        if len(slots) < 2 or (pair.order[1][slots] == MISSING).any():
            return False
        left, right = (numpy.sort(pair.value[side][slots]) for side in (0, 1))
        return bool((left == right).all() and left[0] != left[-1])
