"""The processes of several runs: their matching, and runs that only distributed the same work differently."""

import numpy

from ..schema.format import TraceFormatError, key_of, trace_files
from ..schema.reader import Reader
from .table import TraceTable, portable_key


class Processes(object):
    """The processes of which a folder has traces.

    files: {name: path}; parents: {name: name of its parent, or None}; start: when the first of several processes
    started, in seconds since the epoch.
    """

    def __init__(self, folder):
        self.folder = folder
        self.files = trace_files(folder)
        headers = {name: _header(path) for name, path in self.files.items()}
        self.parents = {name: header.get("parent") for name, header in headers.items()}
        started = [header["started"] for header in headers.values() if header.get("started")]
        self.start = min(started) if len(started) > 1 else None  # causes in one process need no common time

    def children(self, parent):
        return [name for name in self.files if parent is not None and self.parents[name] == parent]


def processes_of(folders):
    """Return the Processes of each folder. Raises TraceFormatError if they are not of the same program."""
    runs = [Processes(folder) for folder in folders]
    for run in runs[1:]:
        names = unmatched(runs[0], run)
        roots = [name for name in names if (run if name in run.files else runs[0]).parents[name] is None]
        if roots or not set(runs[0].files) & set(run.files):
            raise TraceFormatError("{} and {} do not have the same processes: {}".format(
                runs[0].folder, run.folder, ", ".join(roots or names)), "compare runs of as many processes")
    return runs


def unmatched(left, right):
    """Return the names of processes that only one of two runs has."""
    return sorted(set(left.files) ^ set(right.files))


def only_redistributed(left, right, parent):
    """Return whether the children of a process did the same work together, divided in another way."""
    tables_by_run = [[TraceTable(processes.files[name]) for name in processes.children(parent)]
                     for processes in (left, right)]
    weights = [sorted((table.end or {}).get("weights") or "" for table in tables) for tables in tables_by_run]
    if [digest for digest in weights[0] if digest] != [digest for digest in weights[1] if digest]:
        return False
    return numpy.array_equal(*[_all_records(tables) for tables in tables_by_run])


def _all_records(tables):
    """Return the records of some processes as sorted hashes, which depend neither on process nor on time."""
    hashes = [numpy.empty(0, numpy.uint64)]
    for table in tables:
        # Without folders and generated file names, which differ between runs.
        names = numpy.array([hash(portable_key(key_of(table.definition(number)))) & 0xffffffffffffffff
                             for number in table.ids()], numpy.uint64)
        with numpy.errstate(over="ignore"):
            hashes.append(names[table.key] * numpy.uint64(0x9e3779b97f4a7c15) ^ table.value)
    return numpy.sort(numpy.concatenate(hashes))


def _header(path):
    reader = Reader(path)
    reader.close()
    return reader.header
