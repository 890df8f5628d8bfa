"""The alignment by step of ops that two runs execute in different steps.

The n-th records of an op in both runs correspond to each other only if they belong to the same step. The third
iteration of a loop, for example, is in step 0 of one run, and in step 1 of the other run, whose loop had two iterations
in step 0.

pair is a table.AlignedPair, which has for each run columns over all slots: a slot is for the record of an op in one run
and its counterpart in the other; the slots of one definition are a group. pair.order: the place of a slot's record in
the file, or MISSING; pair.definition(group): (0 or 1 for the run, the definition).
"""

import numpy


def unaligned_groups(pair):
    """Return the groups (ascending) that both runs have in different steps, and not always with equal values.

    None are returned for a program with threads, which make it chance in which step a record is.
    """
    absent = [order == _missing(order) for order in pair.order]
    is_common = ~(absent[0] | absent[1])
    is_moved = is_common & (pair.step[0] != pair.step[1])
    if not is_moved.any() or any(_has_threads(run) for run in pair.runs):
        return numpy.empty(0, numpy.int64)
    is_unequal = (absent[0] != absent[1]) | is_common & (pair.value[0] != pair.value[1])
    groups = numpy.intersect1d(*[pair.groups_of(numpy.flatnonzero(flags)) for flags in (is_moved, is_unequal)])
    # These feed a queue in a thread of their own: it is chance how often they run.
    prefetched = [group for group in groups.tolist() if pair.definition(group)[1]["attrs"].get("prefetch")]
    return numpy.setdiff1d(groups, prefetched)


def realign(pair, groups):
    """Return (first slots, [new positions of the first run's slots, of the second's]) of a table aligned by step.

    Slots that only the second run has in a step are behind the others of their group.
    """
    all_slots = numpy.arange(len(pair))
    group = pair.groups_of(all_slots)
    own_slots = [all_slots[numpy.isin(group, groups) & (order != _missing(order))] for order in pair.order]
    partner = _match_records(*[(group[slots], pair.step[side][slots]) for side, slots in enumerate(own_slots)])
    unmatched = own_slots[1][partner < 0]
    additional = numpy.bincount(group[unmatched], minlength=len(pair.keys))
    sizes = numpy.diff(pair.first_slot)
    sizes[groups] = pair.record_counts[0][groups] + additional[groups]
    first = numpy.concatenate([[0], numpy.cumsum(sizes)]).astype(numpy.int64)
    places = [all_slots - pair.first_slot[group] + first[group] for _ in (0, 1)]
    places[1][own_slots[1][partner >= 0]] = places[0][own_slots[0][partner[partner >= 0]]]
    unmatched_group = group[unmatched]
    places[1][unmatched] = first[unmatched_group] + pair.record_counts[0][unmatched_group] + _count_equal_before(
        unmatched_group)
    return first, places


def _match_records(left, right):
    """Return, for each record of the right run, the index of its counterpart in the left run, or -1.

    left, right: (groups, steps) of records, by group and in the order in which they were made.
    """
    sides = numpy.repeat([0, 1], [len(left[0]), len(right[0])])
    index = numpy.concatenate([numpy.arange(len(side_columns[0])) for side_columns in (left, right)])
    group, step = (numpy.concatenate(columns) for columns in zip(left, right))
    occurrence = numpy.concatenate([_occurrences_of(*side_columns) for side_columns in (left, right)])
    sorting = numpy.lexsort((sides, occurrence, step, group))
    is_match = numpy.ones(max(len(sorting) - 1, 0), bool)
    for column in (group, step, occurrence):
        is_match &= column[sorting[1:]] == column[sorting[:-1]]
    partner = numpy.full(len(right[0]), -1, numpy.int64)
    partner[index[sorting[1:][is_match]]] = index[sorting[:-1][is_match]]
    return partner


def _occurrences_of(group, step):
    """Return the occurrence of each record in its group and step, from 0."""
    sorting = numpy.lexsort((step, group))
    is_new = (numpy.diff(group[sorting]) != 0) | (numpy.diff(step[sorting].astype(numpy.int64)) != 0)
    occurrences = numpy.empty(len(sorting), numpy.int64)
    occurrences[sorting] = _count_equal_before(numpy.concatenate([[0], numpy.cumsum(is_new)])[:len(sorting)])
    return occurrences


def _count_equal_before(names):
    """Return for each name the number of equal names before it. names: ascending."""
    return numpy.arange(len(names)) - numpy.searchsorted(names, names)


def _missing(order):
    """Return the value of `order` without a record, see table.MISSING."""
    return numpy.iinfo(order.dtype).max


def _has_threads(run):
    return any(run.definition(number)["thread"] for number in run.ids())
