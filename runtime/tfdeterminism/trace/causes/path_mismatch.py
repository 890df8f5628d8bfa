"""The first op in a step that one run executes and the other does not, for ops that Python runs eagerly.

An eager record is identified by its line and by its number among the records of that line in the step. One more
iteration of a loop shifts the numbers of all later records of the line. Records behind that point cannot be aligned, so
that none of them is a cause.
"""

import collections
import re

import numpy

from ..align.table import MISSING
from ..faults import CauseKind
from ..schema.format import PYTHON
from .cause import Cause

_WINDOW = 256  # records behind a mismatch that are compared
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
        """Return a flag for each slot: whether its record stands at or behind the mismatch in either run."""
        flags = [(order >= start) & (order != MISSING) for order, start in zip(pair.order, self.orders)]
        return numpy.logical_or(*flags)


def find_path_mismatch(pair, step, unequal):
    """Return the PathMismatch of a step, or None.

    pair: an align.table.AlignedPair: a slot is for a record and its counterpart in the other run; the slots of one
    definition are a group, whose key is (thread, replica, function, number of its trace, node, output, op type).
    unequal: a flag for each slot, whether its record differs or is missing. Equal records in another order are not a
    mismatch. Programs that run ops in several threads have none: their records have no fixed order or step.
    """
    if any(key[0] for key in pair.keys):
        return None
    lines = _lines(pair)
    runs = [_sequence(pair, side, step, lines) for side in (0, 1)]
    names = [lines[pair.groups_of(slots)] for slots in runs]
    position = _first_difference(names, [unequal[slots] for slots in runs])
    if position is None:
        return None
    orders = [int(pair.order[side][slots[position]]) if position < len(slots) else int(MISSING)
              for side, slots in enumerate(runs)]
    side = _longer_run(names, position)
    return PathMismatch(orders, _root(pair, side, step, runs[side], position))


def _lines(pair):
    """Return a number for each group, equal for records of one line of the program; -1 for ops that graphs run."""
    numbers, line_numbers = {}, []
    for _, replica, function, _, node, output, op in pair.keys:
        line = (_NUMBER.sub("", node), output, op) if "@" in node and _NUMBER.search(node) else None
        line_numbers.append(-1 if line is None or function or replica else numbers.setdefault(line, len(numbers)))
    return numpy.array(line_numbers, numpy.int64)


def _sequence(pair, side, step, lines):
    """Return the slots of a run in a step, in the order of execution."""
    slots = numpy.flatnonzero((pair.order[side] != MISSING) & (pair.step[side] == step))
    slots = slots[lines[pair.groups_of(slots)] >= 0]
    return slots[numpy.argsort(pair.order[side][slots], kind="mergesort")]


def _first_difference(names, unequal):
    """Return the position from which two sequences differ for good, or None. unequal: flags of their records."""
    length = min(len(sequence) for sequence in names)
    candidates = numpy.flatnonzero(names[0][:length] != names[1][:length]).tolist()
    end = 0
    for position in candidates:
        if position < end:
            continue
        end = _end_of_block(names, position)
        if end is None or any(flags[position:end].any() for flags in unequal):
            return position
    return length if len(names[0]) != len(names[1]) else None


def _end_of_block(names, start):
    """Return the end of the block that has the same names in any order in both sequences, or None."""
    count = collections.Counter()
    for position in range(start, min(len(sequence) for sequence in names)):
        for name, change in ((int(names[0][position]), 1), (int(names[1][position]), -1)):
            count[name] += change
            if not count[name]:
                del count[name]
        if not count:
            return position + 1
    return None


def _longer_run(names, position):
    """Return the index of the run that has an additional op at a position.

    If either run may have it, the run that repeats the op it executed last is chosen, because a loop does so.
    """
    remainders = [sequence[position:position + _WINDOW].tolist() for sequence in names]
    if not all(remainders):
        return int(not remainders[0])
    edits = [_edit_distance(remainders[0][1:], remainders[1]), _edit_distance(remainders[0], remainders[1][1:])]
    # The position of the last op before that has the same name, 0 for none.
    previous = [int(numpy.flatnonzero(names[0][:position] == remainder[0])[-1:].sum()) for remainder in remainders]
    return int((edits[1], -previous[1]) < (edits[0], -previous[0]))


def _edit_distance(left, right):
    """Return the number of insertions and deletions that turn one sequence into the other."""
    previous = list(range(len(right) + 1))
    for name in left:
        row = [previous[0] + 1]
        for column, other_name in enumerate(right):
            row.append(previous[column] if name == other_name else 1 + min(previous[column + 1], row[column]))
        previous = row
    return previous[-1]


def _root(pair, side, step, slots, position):
    """Return the Cause for the first additional op, not for the Python value that is its input."""
    window = slots[position:position + 64]
    definitions = [pair.runs[side].definition(int(pair.ids[side][group]), int(pair.order[side][slot]))
                   for slot, group in zip(window.tolist(), pair.groups_of(window).tolist())]
    offset = next((number for number, definition in enumerate(definitions) if definition["op"] != PYTHON
                   and definition["line"] == definitions[0]["line"]), 0)
    slot = int(slots[position + offset])
    order, group = int(pair.order[side][slot]), int(pair.groups_of(slot))
    return Cause(CauseKind.STRUCTURE, side, definitions[offset], step, order, group, slot)
