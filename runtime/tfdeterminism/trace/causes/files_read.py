"""Files that the program's own lines read, as the last blocks of traces list them, and how they differ between runs."""

import os

from ..schema.format import trace_files
from ..schema.reader import Reader

_LISTED = 4  # maximum of texts about files


class FileRead(object):
    """One file that one run read.

    digest: of its content at the first read, or None; read_by: frames of the code that read it; modified: its
    modification time at that read, in seconds since 1970; written_by: frames of the code that wrote it, or None;
    written_by_run: whether the run wrote it before it read it; ops_before: number of ops that were defined before the
    read; temporary: whether it lies in the folder of temporary files.
    """

    def __init__(self, entry):
        self.path, self.digest, self.modified = str(entry["path"]), entry["reads"], entry["changed"]
        self.read_by, self.written_by = _frames(entry["by"]), _frames(entry["writes"])
        self.written_by_run, self.temporary = bool(entry["own"]), bool(entry["temporary"])
        self.ops_before = int(entry["defined"])

    @property
    def location(self):
        return "{}:{}".format(*self.read_by[0][:2]) if self.read_by else "?"

    def describe(self, cwd):
        """Return a text such as "data.npy (train.py:5)"."""
        is_inside = self.path.startswith((cwd or "?") + os.sep)
        name = os.path.basename(self.path) if self.temporary or not is_inside else os.path.relpath(self.path, cwd)
        file, line = self.read_by[0][:2] if self.read_by else ("?", 0)
        return "{} ({}:{})".format(name, os.path.basename(file), line)


def _frames(frames):
    return [(str(file), int(line), str(function)) for file, line, function in frames or ()]


def reads_of(end):
    """Return the FileReads in the end of a trace; `end` is None for a truncated trace. Invalid entries are skipped."""
    reads = []
    for entry in (end or {}).get("files") or ():
        try:
            reads.append(FileRead(entry))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            continue
    return reads


class ChangedFiles(object):
    """The files whose content differed when two runs read them. pair: a table.AlignedPair; a `root` is a Cause."""

    def __init__(self, pair):
        self._pair = pair
        self._files = changed_files([run.end for run in pair.runs])

    def file_of_value(self, root):
        """Return the FileRead that a Python value came from, or None if it is unknown.

        Either the value was recorded as read from a file, or the line that made it had read the file.
        """
        reads = self.read_before(root)
        line = tuple(root.definition["stack"][0][:2]) if root.definition["stack"] else None
        by_line = [read for read in reads if line in [frame[:2] for frame in read.read_by]]
        return (by_line or (reads if root.definition["attrs"].get("from_file") else []) or [None])[-1]

    def read_before(self, root):
        """Return the changed files that the run had read before it defined this op."""
        return [read for read in self._files[root.side] if read.ops_before <= root.definition["id"]]

    def describe(self, read, side):
        return read.describe(self._pair.runs[side].header.get("cwd"))


def changed_files(ends):
    """Return, for each of two runs, the FileReads that the other run lacks or read with another content."""
    reads = [_by_name([read for read in reads_of(end) if read.digest is not None]) for end in ends]
    return [[read for name, read in own_reads.items() if _differs(read, other_reads.get(name))]
            for own_reads, other_reads in (reads, reads[::-1])]


def _by_name(files):
    """Return {name: FileRead}. The name of a temporary file is (frames that read it, its number among their files)."""
    reads, count = {}, {}
    for read in files:
        name = read.path
        if read.temporary:
            frames = tuple(read.read_by)
            count[frames] = count.get(frames, 0) + 1
            name = frames, count[frames]
        reads[name] = read
    return reads


def _differs(read, other):
    return not read.temporary if other is None else read.digest != other.digest


def files_left_behind(earlier, later):
    """Return texts such as "cache.npy (train.py:9)" about files that the earlier of two runs left behind.

    earlier, later: folders of the runs. Only the later run read such a file with this content, and the earlier run
    wrote it.
    """
    earlier_files, later_files = _of_folder(earlier), _of_folder(later)
    earlier_reads = {read.path: read for read in earlier_files[1]}

    def is_left_behind(read):
        previous = earlier_reads.get(read.path)
        is_written = previous is not None and previous.written_by or (
            earlier_files[0] <= (read.modified or 0) < later_files[0])
        return bool(is_written) and (previous is None or previous.digest != read.digest)

    left_behind = [read for read in later_files[1]
                   if read.digest is not None and not read.written_by_run and is_left_behind(read)]
    return [read.describe(later_files[2]) for read in left_behind][:_LISTED]


def _of_folder(folder):
    """Return (when the run began, the FileReads of all its processes, its working directory)."""
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
