"""Where two runs begin to do other things: what Python runs in a step, one thing after the other.

What runs op by op is known by its line and by which of that line it is in its step. A loop that turns once more shifts
all that this line does later in the step: from there on nothing can be brought together, and nothing is a cause.
"""

import collections
import re

import numpy

from ..align.table import MISSING
from ..faults import CauseKind
from ..schema.format import PYTHON
from .cause import Cause

_WINDOW = 256  # records that are looked at behind where they part
_NUMBER = re.compile(r"#\d+$")


class PathMismatch(object):
    """Where two runs begin to execute different ops.

    orders: for each run the place in its file of the first record that the other run does not have there, MISSING if
    none is left; cause: the Cause of that record.
    """

    def __init__(self, orders, cause):
        self.orders = orders
        self.cause = cause

    def slots_after(self, pair):
        """A flag for each slot: is it of the records from there on, in either run?"""
        return numpy.logical_or(*[(order >= at) & (order != MISSING) for order, at in zip(pair.order, self.orders)])


def find_path_mismatch(pair, step, unlike):
    """The PathMismatch of this step, or None. Of the main thread alone: what threads do is in no order, and where
    there are some it is chance of which step a record is. unlike: a flag for each slot, does it differ or is it
    missing? What is done in another order, and is alike in it, is no parting."""
    if any(key[0] for key in pair.keys):
        return None
    lines = _lines(pair)
    runs = [_sequence(pair, side, step, lines) for side in (0, 1)]
    names = [lines[pair.groups_of(slots)] for slots in runs]
    at = _first_difference(names, [unlike[slots] for slots in runs])
    if at is None:
        return None
    orders = [int(pair.order[side][slots[at]]) if at < len(slots) else int(MISSING)
              for side, slots in enumerate(runs)]
    side = _longer_run(names, at)
    return PathMismatch(orders, _root(pair, side, step, runs[side], at))


def _lines(pair):
    """What the records of one line of the program share, as a number for each group; -1 for all that is not run by
    Python itself."""
    numbers, found = {}, []
    for _, replica, function, _, node, output, op in pair.keys:
        line = (_NUMBER.sub("", node), output, op) if "@" in node and _NUMBER.search(node) else None
        found.append(-1 if line is None or function or replica else numbers.setdefault(line, len(numbers)))
    return numpy.array(found, numpy.int64)


def _sequence(pair, side, step, lines):
    """The slots of a run in a step, as they were made."""
    slots = numpy.flatnonzero((pair.order[side] != MISSING) & (pair.step[side] == step))
    slots = slots[lines[pair.groups_of(slots)] >= 0]
    return slots[numpy.argsort(pair.order[side][slots], kind="mergesort")]


def _first_difference(names, unlike):
    """Where two sequences go apart for good, or None; unlike: flags of their records."""
    length = min(len(one) for one in names)
    candidates = numpy.flatnonzero(names[0][:length] != names[1][:length]).tolist()
    end = 0
    for at in candidates:
        if at < end:
            continue
        end = _end_of_block(names, at)
        if end is None or any(flags[at:end].any() for flags in unlike):
            return at
    return length if len(names[0]) != len(names[1]) else None


def _end_of_block(names, start):
    """Up to where both do the same from there on, in any order; None where they never do."""
    count = collections.Counter()
    for at in range(start, min(len(one) for one in names)):
        for name, change in ((int(names[0][at]), 1), (int(names[1][at]), -1)):
            count[name] += change
            if not count[name]:
                del count[name]
        if not count:
            return at + 1
    return None


def _longer_run(names, at):
    """The run that does something more before it does what the other goes on with; where both may be said, the one that
    repeats what was done last: a loop."""
    rest = [one[at:at + _WINDOW].tolist() for one in names]
    if not all(rest):
        return int(not rest[0])
    edits = [_edit_distance(rest[0][1:], rest[1]), _edit_distance(rest[0], rest[1][1:])]
    last = [int(numpy.flatnonzero(names[0][:at] == one[0])[-1:].sum()) for one in rest]
    return int((edits[1], -last[1]) < (edits[0], -last[0]))


def _edit_distance(left, right):
    """How many have to be put in and taken out to make the one of the other."""
    before = list(range(len(right) + 1))
    for one in left:
        row = [before[0] + 1]
        for at, other in enumerate(right):
            row.append(before[at] if one == other else 1 + min(before[at + 1], row[at]))
        before = row
    return before[-1]


def _root(pair, side, step, slots, at):
    """The first op that is too many: not the value from Python that goes into it."""
    definitions = [pair.runs[side].definition(int(pair.ids[side][group]), int(pair.order[side][slot]))
                   for slot, group in zip(slots[at:at + 64].tolist(), pair.groups_of(slots[at:at + 64]).tolist())]
    one = next((number for number, found in enumerate(definitions) if found["op"] != PYTHON
                and found["line"] == definitions[0]["line"]), 0)
    slot = int(slots[at + one])
    order, group = int(pair.order[side][slot]), int(pair.groups_of(slot))
    return Cause(CauseKind.STRUCTURE, side, definitions[one], step, order, group, slot)
