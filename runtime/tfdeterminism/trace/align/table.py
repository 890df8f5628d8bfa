"""The table that aligns the records of two traces by their keys, never by position.

Two records correspond to each other if their keys (`format.key_of`) and occurrences agree. If the runs execute an op in
different steps, their steps and their occurrences in the step must agree (`by_step`). Both traces are laid out in one
table of *slots*: a range of slots for each key, and in it one for each occurrence, so that a comparison is one pass
over two columns. The table needs 20 bytes for each record of a trace while reading, and 48 bytes for each slot
afterwards.
"""

import bisect
import os
import re

import numpy

from ..schema import format as trace_format
from ..schema.reader import Reader
from . import by_step

MISSING = numpy.uint32(0xffffffff)  # value of `order` without a record
_TEXT_FIELDS = ("file", "variable", "layer", "forward", "dtype")
_FOLDER = re.compile(r"@.*[/\\]")
_GENERATED = re.compile(r"(__autograph_generated_file|\btmp)[a-z0-9_]{8}\.py\b")
_SHAPE_WEIGHT = numpy.uint64(0x9e3779b97f4a7c15)  # odd: no shape is lost


class TraceTable(object):
    """One trace: its header, the columns of its records in file order, and its end.

    key (the id of the record's definition), occurrence, step (u4) and value (u8: digest and shape together); notes,
    captures, end, damage as in `reader.Trace`; values: list of tensor_values.TensorSample.
    """

    def __init__(self, path):
        self.path = path
        self.notes, self.captures, self.values, self.end = [], [], [], None
        self._source = {}   # {file: {line: text}} of the lines that the trace contains
        self._times = []    # (number of records before, seconds since 1970)
        self._history = {}  # {id: [(number of records before, definition), ...]}
        reader = Reader(path)
        try:
            self.header = reader.header
            self._read(reader)
        finally:
            reader.close()
        self.damage = reader.damage

    def _check(self, definition, definitions):
        """Raise TraceFormatError for a definition that no recorder writes, because the file is untrusted."""
        id_count = max(len(self._history), max(sibling["id"] for sibling in definitions) + 1)
        texts_valid = all(definition.get(name) is None or isinstance(definition[name], str) for name in _TEXT_FIELDS)
        calls_valid = all(
            isinstance(call, list) and len(call) == 2 and isinstance(call[0], str) and isinstance(call[1], int)
            for call in definition["calls"])
        frames_valid = all(isinstance(frame, list) and [type(field) for field in frame] == [str, int, str]
                           for frame in definition["stack"] + definition["forward_stack"])
        inputs_valid = texts_valid and calls_valid and frames_valid and all(
            0 <= number < id_count for number in definition["inputs"])
        if not inputs_valid:
            raise trace_format.TraceFormatError(
                "{} has a definition that makes no sense: id {}".format(self.path, definition["id"]), "record it again")

    @property
    def is_complete(self):
        """Whether the program ended normally, and everything was recorded."""
        return bool(self.end and self.end.get("clean", True) and not self.end.get("error")) and not self.damage

    def snippet(self, path, number, around=2):
        """Return [[number, text], ...] of the program around a line, from the trace alone."""
        lines = self._source.get(path, {})
        return [[line, lines[line][:160]] for line in range(number - around, number + around + 1) if line in lines]

    def changed_lines(self, other):
        """Return {file: the first line whose text differs in the other run}, among lines that both have."""
        first_changes = {}
        for path in set(self._source) & set(other._source):
            own_lines, other_lines = self._source[path], other._source[path]
            changed = [line for line in set(own_lines) & set(other_lines) if own_lines[line] != other_lines[line]]
            if changed:
                first_changes[path] = min(changed)
        return first_changes

    def ids(self):
        return range(len(self._history))

    def definition(self, number, order=None):
        """Return the definition of id `number` at the time of record `order`; None for the latest."""
        versions = self._history[number]
        if order is not None and len(versions) > 1:
            valid = [version for first, version in versions if first <= order]
            return valid[-1] if valid else versions[0][1]
        return versions[-1][1]

    def recorded_at(self, order):
        """Return the time of record number `order`, in seconds since 1970, or slightly later; None if unknown."""
        count = bisect.bisect_right(self._times, (order, float("inf")))
        return self._times[count - 1][1] if count else None

    def free_columns(self):
        """Free the columns, whose content the AlignedPair has."""
        self.key = self.occurrence = self.step = self.value = None

    def _read(self, reader):
        capacity = _max_record_count(self.path)
        self.key, self.occurrence, self.step = (numpy.empty(capacity, "<u4") for _ in range(3))
        self.value = numpy.empty(capacity, "<u8")
        count = 0
        for kind, value in reader:
            if kind == "records":
                rows = slice(count, count + len(value))
                self.key[rows], self.occurrence[rows] = value["key"], value["occurrence"]
                self.step[rows] = value["step"]
                self.value[rows] = value["digest"] + value["shape"] * _SHAPE_WEIGHT
                count += len(value)
            elif kind == "definitions":
                for definition in value:
                    self._check(definition, value)
                    self._history.setdefault(definition["id"], []).append((count, definition))
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


def _max_record_count(path):
    """Return an upper limit of the number of records in a file. Untouched pages of memory cost nothing."""
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
        """Return how many records both runs have up to a step, inclusive."""
        is_common = (self.order[0] != MISSING) & (self.order[1] != MISSING)
        return int(numpy.count_nonzero(is_common & (numpy.maximum(*self.step) <= end)))

    def slots(self, group):
        """Return the slots of a group, as a slice."""
        return slice(int(self.first_slot[group]), int(self.first_slot[group + 1]))

    def ever_differs(self, number, side):
        """Return whether a record of this id differs from the other run's in any step."""
        slots = self.slots(int(self.group[side][number]))
        is_common = (self.order[0][slots] != MISSING) & (self.order[1][slots] != MISSING)
        return bool((is_common & (self.value[0][slots] != self.value[1][slots])).any())

    def groups_of(self, slots):
        """Return the group of each slot."""
        return numpy.searchsorted(self.first_slot, slots, "right") - 1

    def definition(self, group, order=None):
        """Return (side, definition) of a group, from the first run that has it."""
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
        if numpy.count_nonzero(self.order[-1] != MISSING) != run.count:  # two records in one slot
            raise _bad_occurrences_error(run)

    def _refill_slots(self, first_slot, places):
        """Move the slots. first_slot: the new one; places: for each run the new position of each slot."""
        self.first_slot = first_slot
        for side, place in enumerate(places):
            present = self.order[side] != MISSING
            for columns, empty in ((self.value, 0), (self.step, 0), (self.order, MISSING)):
                column = numpy.full(len(self), empty, columns[side].dtype)
                column[place[present]] = columns[side][present]
                columns[side] = column


def _groups(runs):
    """Return (keys, for each run the group by id). Ids with the same key, in order, have the same group in both."""
    numbers, by_run = {}, []
    for run in runs:
        run_groups, counts = [], {}
        for number in run.ids():
            key = portable_key(trace_format.key_of(run.definition(number)))
            counts[key] = counts.get(key, -1) + 1
            run_groups.append(numbers.setdefault((key, counts[key]), len(numbers)))
        by_run.append(numpy.array(run_groups, numpy.int64))
    return [key for (key, _), _ in sorted(numbers.items(), key=lambda item: item[1])], by_run


def portable_key(key):
    """Return a key without the folder of a file and without AutoGraph's file names, which depend on the run."""
    return tuple(_FOLDER.sub("@", _GENERATED.sub("autograph.py", field)) if isinstance(field, str) else field
                 for field in key)


def _inverse(group, size):
    numbers = numpy.full(size, -1, numpy.int64)
    numbers[group] = numpy.arange(len(group))
    return numbers


def _counts(run, group, size):
    """Return the number of records of each group in a run."""
    by_id = numpy.bincount(run.key, minlength=len(group))
    if (run.occurrence >= by_id[run.key]).any():
        raise _bad_occurrences_error(run)
    counts = numpy.zeros(size, numpy.int64)
    counts[group] = by_id
    return counts


def _bad_occurrences_error(run):
    return trace_format.TraceFormatError("{} counts its records wrongly".format(run.path), "record it again")
