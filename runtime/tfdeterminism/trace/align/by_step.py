"""Bring together by step what two runs do in other steps.

What an op does for the n-th time in both is the same record only where it is of the same step: the third turn of a loop
is in one run of step 0, and in the other, which turned twice there, of step 1.
"""

import numpy


def unaligned_groups(pair):
    """The groups (ascending) that both runs have in other steps, and not with the same values all along: what does the
    same is the same, whenever it does it. None where threads of the program make it chance in which step it is."""
    absent = [order == _missing(order) for order in pair.order]
    both = ~(absent[0] | absent[1])
    moved = both & (pair.step[0] != pair.step[1])
    if not moved.any() or any(_has_threads(run) for run in pair.runs):
        return numpy.empty(0, numpy.int64)
    unlike = (absent[0] != absent[1]) | both & (pair.value[0] != pair.value[1])
    found = numpy.intersect1d(*[pair.groups_of(numpy.flatnonzero(one)) for one in (moved, unlike)])
    ahead = [group for group in found.tolist() if pair.definition(group)[1]["attrs"].get("prefetch")]
    return numpy.setdiff1d(found, ahead)


def realign(pair, groups):
    """(first, [places of the first run's slots, of the second's]): a table in which those groups are brought together
    by step, and where each slot of the one before goes. What only the second run has in a step is behind the rest."""
    every = numpy.arange(len(pair))
    group = pair.groups_of(every)
    mine = [every[numpy.isin(group, groups) & (order != _missing(order))] for order in pair.order]
    partner = _match_records(*[(group[slots], pair.step[side][slots]) for side, slots in enumerate(mine)])
    alone = mine[1][partner < 0]
    more = numpy.bincount(group[alone], minlength=len(pair.keys))
    sizes = numpy.diff(pair.first_slot)
    sizes[groups] = pair.record_counts[0][groups] + more[groups]
    first = numpy.concatenate([[0], numpy.cumsum(sizes)]).astype(numpy.int64)
    places = [every - pair.first_slot[group] + first[group] for _ in (0, 1)]
    places[1][mine[1][partner >= 0]] = places[0][mine[0][partner[partner >= 0]]]
    places[1][alone] = first[group[alone]] + pair.record_counts[0][group[alone]] + _nth(group[alone])
    return first, places


def _match_records(left, right):
    """For each record of the right the one of the left that is the same in its step, as an index, or -1.

    left, right: (groups, steps) of records, by group and in the order in which they were made.
    """
    sides = numpy.repeat([0, 1], [len(left[0]), len(right[0])])
    index = numpy.concatenate([numpy.arange(len(one[0])) for one in (left, right)])
    group, step = (numpy.concatenate(both) for both in zip(left, right))
    nth = numpy.concatenate([_nth_of(*one) for one in (left, right)])
    turn = numpy.lexsort((sides, nth, step, group))
    same = numpy.ones(max(len(turn) - 1, 0), bool)
    for column in (group, step, nth):
        same &= column[turn[1:]] == column[turn[:-1]]
    partner = numpy.full(len(right[0]), -1, numpy.int64)
    partner[index[turn[1:][same]]] = index[turn[:-1][same]]
    return partner


def _nth_of(group, step):
    """Which of its group and step each record is, from 0."""
    turn = numpy.lexsort((step, group))
    changed = (numpy.diff(group[turn]) != 0) | (numpy.diff(step[turn].astype(numpy.int64)) != 0)
    found = numpy.empty(len(turn), numpy.int64)
    found[turn] = _nth(numpy.concatenate([[0], numpy.cumsum(changed)])[:len(turn)])
    return found


def _nth(names):
    """How many of the same name stand before each. names: ascending."""
    return numpy.arange(len(names)) - numpy.searchsorted(names, names)


def _missing(order):
    """No record: see align.MISSING."""
    return numpy.iinfo(order.dtype).max


def _has_threads(run):
    return any(run.definition(number)["thread"] for number in run.ids())
