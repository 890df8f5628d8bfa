"""Files that the program's own lines have read, as the ends of traces tell of them: which were not the same?"""

import os

from ..schema.format import trace_files
from ..schema.reader import Reader

_LISTED = 4


class FileRead(object):
    """One file of one run.

    digest: of its content when it was first read, or None; read_by: frames of the code that read it; modified: when it
    had been written then, in seconds since 1970; written_by: frames of the code that wrote it, or None; written_by_run:
    did the run write it before it read it?; ops_before: number of ops that were defined when it was read; temporary: is
    it in the folder of temporary files?
    """

    def __init__(self, said):
        self.path, self.digest, self.modified = str(said["path"]), said["reads"], said["changed"]
        self.read_by, self.written_by = _frames(said["by"]), _frames(said["writes"])
        self.written_by_run, self.temporary = bool(said["own"]), bool(said["temporary"])
        self.ops_before = int(said["defined"])

    @property
    def location(self):
        return "{}:{}".format(*self.read_by[0][:2]) if self.read_by else "?"

    def describe(self, cwd):
        """"data.npy (train.py:5)"."""
        inside = self.path.startswith((cwd or "?") + os.sep)
        name = os.path.basename(self.path) if self.temporary or not inside else os.path.relpath(self.path, cwd)
        file, line = self.read_by[0][:2] if self.read_by else ("?", 0)
        return "{} ({}:{})".format(name, os.path.basename(file), line)


def _frames(said):
    return [(str(file), int(line), str(function)) for file, line, function in said or ()]


def reads_of(end):
    """The FileRead of the end of a trace, None for a trace that was cut off. What a stranger wrote there is passed
    by."""
    found = []
    for said in (end or {}).get("files") or ():
        try:
            found.append(FileRead(said))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            continue
    return found


class ChangedFiles(object):
    """Which files two runs have read otherwise, and whether a value comes from one. pair: a table.AlignedPair."""

    def __init__(self, pair):
        self._pair = pair
        self._files = changed_files([run.end for run in pair.runs])

    def file_of_value(self, root):
        """The FileRead that this value from Python was read from: it is what was read, or the line that made it has
        read the file. None where nothing tells."""
        before = self.read_before(root)
        line = tuple(root.definition["stack"][0][:2]) if root.definition["stack"] else None
        by_line = [one for one in before if line in [frame[:2] for frame in one.read_by]]
        return (by_line or (before if root.definition["attrs"].get("from_file") else []) or [None])[-1]

    def read_before(self, root):
        """What was read otherwise before this op was known."""
        return [one for one in self._files[root.side] if one.ops_before <= root.definition["id"]]

    def describe(self, one, side):
        return one.describe(self._pair.runs[side].header.get("cwd"))


def changed_files(ends):
    """For each of two runs what it has read that the other has read otherwise, or not at all."""
    sides = [_named([one for one in reads_of(end) if one.digest is not None]) for end in ends]
    return [[one for name, one in mine.items() if _differs(one, theirs.get(name))]
            for mine, theirs in (sides, sides[::-1])]


def _named(files):
    """By their paths; those in a temporary folder, whose name is of one run, by who read them and how manieth."""
    found, count = {}, {}
    for one in files:
        name = one.path
        if one.temporary:
            place = tuple(one.read_by)
            count[place] = count.get(place, 0) + 1
            name = place, count[place]
        found[name] = one
    return found


def _differs(one, other):
    return not one.temporary if other is None else one.digest != other.digest


def files_left_behind(first, later):
    """What only the later of two runs (folders) read so, and the first has written: "cache.npy (train.py:9)", ..."""
    mine, theirs = _of_folder(first), _of_folder(later)
    before = {one.path: one for one in mine[1]}

    def is_left(one):
        known = before.get(one.path)
        made = known is not None and known.written_by or mine[0] <= (one.modified or 0) < theirs[0]
        return bool(made) and (known is None or known.digest != one.digest)

    found = [one for one in theirs[1] if one.digest is not None and not one.written_by_run and is_left(one)]
    return [one.describe(theirs[2]) for one in found][:_LISTED]


def _of_folder(folder):
    """(when it began, the FileRead of all its processes, its folder)."""
    files, starts, cwd = [], [], None
    for path in trace_files(folder).values():
        reader = Reader(path)
        try:
            end = next((value for kind, value in reader if kind == "end"), None)
        finally:
            reader.close()
        files += reads_of(end)
        starts.append(float(reader.header.get("started") or 0))
        cwd = cwd or reader.header.get("cwd")
    return min(starts or [0.0]), files, cwd
