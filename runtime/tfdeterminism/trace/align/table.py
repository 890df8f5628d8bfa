"""Bring the records of two traces together: by what they are, never by position.

Two records are the same one where their keys (`format.key_of`) and occurrences agree; where the two
runs do a thing in other steps, where their steps and occurrences in these agree (`by_step`). Both
traces are laid out in one table of *slots*, a run of slots for each key and in it one for each
occurrence, so that comparing is one pass over two columns. 20 bytes a record and trace while
reading, 48 bytes a slot afterwards.
"""

import bisect
import os
import re

import numpy

from ..schema import format as trace_format
from ..schema.reader import Reader
from . import by_step

MISSING = numpy.uint32(0xffffffff)  # as `order`: no record
_WORDS = ("file", "variable", "layer", "forward", "dtype")
_FOLDER = re.compile(r"@.*[/\\]")
_GENERATED = re.compile(r"(__autograph_generated_file|\btmp)[a-z0-9_]{8}\.py\b")
_SHAPE_WEIGHT = numpy.uint64(0x9e3779b97f4a7c15)  # odd: no shape is lost


class TraceTable(object):
    """One trace: header, keys (hashable, by id), columns of its records in file order, and its ends.

    key, occurrence, step (u4) and value (u8: digest and shape together); notes, captures, end, damage
    as in `reader.Trace`; values: list of value_recorder.TensorSample.
    """

    def __init__(self, path):
        self.path = path
        self.notes, self.captures, self.values, self.end = [], [], [], None
        self._source = {}   # file: {line: text}, as far as the trace carries it
        self._times = []    # (number of records before, seconds since 1970)
        self._history = {}  # id: [(number of records before, definition), ...]
        reader = Reader(path)
        try:
            self.header = reader.header
            self._read(reader)
        finally:
            reader.close()
        self.damage = reader.damage

    def _check(self, one, others):
        """BadTrace for a definition that no recorder writes: the file may be a stranger's."""
        known = max(len(self._history), max(other["id"] for other in others) + 1)
        words = all(one.get(name) is None or isinstance(one[name], str) for name in _WORDS)
        calls = all(isinstance(call, list) and len(call) == 2 and isinstance(call[0], str) and isinstance(call[1], int)
                    for call in one["calls"])
        frames = all(isinstance(frame, list) and [type(part) for part in frame] == [str, int, str]
                     for frame in one["stack"] + one["forward_stack"])
        if not (words and calls and frames and all(0 <= number < known for number in one["inputs"])):
            raise trace_format.TraceFormatError(
                "{} has a definition that makes no sense: id {}".format(self.path, one["id"]), "record it again")

    @property
    def is_complete(self):
        """Did the program end by itself, with everything recorded?"""
        return bool(self.end and self.end.get("clean", True) and not self.end.get("error")) and not self.damage

    def snippet(self, path, number, around=2):
        """[[number, text], ...] of the program about a line: what the trace carries; no file is opened for it."""
        lines = self._source.get(path, {})
        return [[at, lines[at][:160]] for at in range(number - around, number + around + 1) if at in lines]

    def changed_lines(self, other):
        """{file: line}: where the text of a file is first another in the other run, among the lines that both carry."""
        found = {}
        for path in set(self._source) & set(other._source):
            mine, theirs = self._source[path], other._source[path]
            unlike = [line for line in set(mine) & set(theirs) if mine[line] != theirs[line]]
            if unlike:
                found[path] = min(unlike)
        return found

    def ids(self):
        return range(len(self._history))

    def definition(self, number, order=None):
        """What id `number` meant when record `order` was made; None for the latest."""
        versions = self._history[number]
        if order is not None and len(versions) > 1:
            valid = [one for before, one in versions if before <= order]
            return valid[-1] if valid else versions[0][1]
        return versions[-1][1]

    def recorded_at(self, order):
        """When record number `order` was made, in seconds since 1970, or a little later; None if that is not known."""
        before = bisect.bisect_right(self._times, (order, float("inf")))
        return self._times[before - 1][1] if before else None

    def free_columns(self):
        """Give back the columns: the table holds what they held."""
        self.key = self.occurrence = self.step = self.value = None

    def _read(self, reader):
        room = _records_within(self.path)
        self.key, self.occurrence, self.step = (numpy.empty(room, "<u4") for _ in range(3))
        self.value = numpy.empty(room, "<u8")
        count = 0
        for kind, value in reader:
            if kind == "records":
                part = slice(count, count + len(value))
                self.key[part], self.occurrence[part] = value["key"], value["occurrence"]
                self.step[part] = value["step"]
                self.value[part] = value["digest"] + value["shape"] * _SHAPE_WEIGHT
                count += len(value)
            elif kind == "definitions":
                for one in value:
                    self._check(one, value)
                    self._history.setdefault(one["id"], []).append((count, one))
            elif kind == "note":
                self.notes.append(value)
            elif kind == "capture":
                self.captures.append(value)
            elif kind == "value":
                self.values.append(value)
            elif kind == "time":
                self._times.append((count, value["at"]))
            elif kind == "source":
                for path, lines in value.items():
                    self._source.setdefault(path, {}).update((int(line), text) for line, text in lines.items())
            else:
                self.end = value
        self.count = count
        for name in ("key", "occurrence", "step", "value"):
            setattr(self, name, getattr(self, name)[:count])


def _records_within(path):
    """No file holds more records than this. Pages that stay untouched cost nothing."""
    return os.path.getsize(path) // trace_format.RECORD_DTYPE.itemsize


class AlignedPair(object):
    """Two runs in one table.

    A group holds the records of one definition; a slot holds the records of both runs that correspond to each other.

    keys: the key of each group (`format.key_of`). first_slot: the first slot of each group, and the number of slots as
    the last entry. value, order, step: for each run a column over all slots (order: the record's place in its file,
    MISSING if this run has no such record). The first run's records of a group fill its first slots, in the order in
    which they were made. record_counts: for each run the number of records of each group. ids: for each run the
    definition's id by group, -1 if it has none; group: the group by id.
    """

    def __init__(self, left, right):
        self.runs = (left, right)
        self.keys, self.group = _groups(self.runs)
        self.ids = [_inverse(group, len(self.keys)) for group in self.group]
        counts = [_counts(run, group, len(self.keys)) for run, group in zip(self.runs, self.group)]
        self.record_counts = counts
        self.first_slot = numpy.concatenate([[0], numpy.cumsum(numpy.maximum(*counts))]).astype(numpy.int64)
        self.value, self.order, self.step = [], [], []
        for run, group in zip(self.runs, self.group):
            self._fill_slots(run, group)
            run.free_columns()
        groups = by_step.unaligned_groups(self)
        if len(groups):
            self._refill_slots(*by_step.realign(self, groups))

    def __len__(self):
        return int(self.first_slot[-1])

    def count_common(self, end):
        """How many records both have before this step, or at it."""
        both = (self.order[0] != MISSING) & (self.order[1] != MISSING)
        return int(numpy.count_nonzero(both & (numpy.maximum(*self.step) <= end)))

    def slots(self, group):
        """The slots of a group, as a slice."""
        return slice(int(self.first_slot[group]), int(self.first_slot[group + 1]))

    def ever_differs(self, number, side):
        """Does a record of this id differ from the other run's in any step?"""
        slots = self.slots(int(self.group[side][number]))
        both = (self.order[0][slots] != MISSING) & (self.order[1][slots] != MISSING)
        return bool((both & (self.value[0][slots] != self.value[1][slots])).any())

    def groups_of(self, slots):
        """The group of each slot."""
        return numpy.searchsorted(self.first_slot, slots, "right") - 1

    def definition(self, group, order=None):
        """(side, definition) of a group: the first run's, or the second's where only that has it."""
        for side in (0, 1):
            number = int(self.ids[side][group])
            if number >= 0:
                return side, self.runs[side].definition(number, order if side == 0 else None)
        raise KeyError(group)

    def _fill_slots(self, run, group):
        place = self.first_slot[:-1][group][run.key] if run.count else numpy.empty(0, numpy.int64)
        place += run.occurrence
        for name, empty, source in (("value", 0, run.value), ("step", 0, run.step),
                                    ("order", MISSING, numpy.arange(run.count, dtype="<u4"))):
            column = numpy.full(len(self), empty, source.dtype)
            column[place] = source
            getattr(self, name).append(column)
        if numpy.count_nonzero(self.order[-1] != MISSING) != run.count:  # two records in one place
            raise _bad_occurrences_error(run)

    def _refill_slots(self, first, places):
        """Move the slots. first: the new first_slot; places: for each run the new place of each slot."""
        self.first_slot = first
        for side, place in enumerate(places):
            have = self.order[side] != MISSING
            for columns, empty in ((self.value, 0), (self.step, 0), (self.order, MISSING)):
                column = numpy.full(len(self), empty, columns[side].dtype)
                column[place[have]] = columns[side][have]
                columns[side] = column


def _groups(runs):
    """(keys, for each run the group by id): the same key, the same group; its n-th id if it has several."""
    numbers, by_run = {}, []
    for run in runs:
        mine, seen = [], {}
        for number in run.ids():
            key = portable_key(trace_format.key_of(run.definition(number)))
            seen[key] = seen.get(key, -1) + 1
            mine.append(numbers.setdefault((key, seen[key]), len(numbers)))
        by_run.append(numpy.array(mine, numpy.int64))
    return [key for (key, _), _ in sorted(numbers.items(), key=lambda item: item[1])], by_run


def portable_key(key):
    """A key without what names a run and no program: the folder of a file, a file that AutoGraph made."""
    return tuple(_FOLDER.sub("@", _GENERATED.sub("autograph.py", part)) if isinstance(part, str) else part
                 for part in key)


def _inverse(group, size):
    numbers = numpy.full(size, -1, numpy.int64)
    numbers[group] = numpy.arange(len(group))
    return numbers


def _counts(run, group, size):
    """How many records each group has in a run."""
    by_id = numpy.bincount(run.key, minlength=len(group))
    if (run.occurrence >= by_id[run.key]).any():
        raise _bad_occurrences_error(run)
    counts = numpy.zeros(size, numpy.int64)
    counts[group] = by_id
    return counts


def _bad_occurrences_error(run):
    return trace_format.TraceFormatError("{} counts its records wrongly".format(run.path), "record it again")
