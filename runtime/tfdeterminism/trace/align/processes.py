"""Matches the processes of several runs, and finds runs that only distributed the same work differently."""

import numpy

from ..schema.format import TraceFormatError, key_of, trace_files
from ..schema.reader import Reader
from .table import TraceTable, portable_key


class Processes(object):
    """The processes that one folder has traces of. files: {name: path}."""

    def __init__(self, folder):
        self.folder = folder
        self.files = trace_files(folder)
        headers = {name: _header(path) for name, path in self.files.items()}
        self.parents = {name: header.get("parent") for name, header in headers.items()}
        started = [header["started"] for header in headers.values() if header.get("started")]
        self.start = min(started) if len(started) > 1 else None  # a single process needs no order

    def children(self, parent):
        return [name for name in self.files if parent is not None and self.parents[name] == parent]


def processes_of(folders):
    """The Processes of each. Raises TraceFormatError where they are not those of the same program."""
    found = [Processes(folder) for folder in folders]
    for one in found[1:]:
        lacking = unmatched(found[0], one)
        strangers = [name for name in lacking if (one if name in one.files else found[0]).parents[name] is None]
        if strangers or not set(found[0].files) & set(one.files):
            raise TraceFormatError("{} and {} do not have the same processes: {}".format(
                found[0].folder, one.folder, ", ".join(strangers or lacking)), "compare runs of as many processes")
    return found


def unmatched(left, right):
    """Names of processes that only one of two has."""
    return sorted(set(left.files) ^ set(right.files))


def only_redistributed(left, right, parent):
    """Did the children of this process do the same things together, though maybe not the same one?"""
    sides = [[TraceTable(one.files[name]) for name in one.children(parent)] for one in (left, right)]
    weights = [sorted((run.end or {}).get("weights") or "" for run in runs) for runs in sides]
    if [one for one in weights[0] if one] != [one for one in weights[1] if one]:
        return False
    return numpy.array_equal(*[_all_records(runs) for runs in sides])


def _all_records(runs):
    """Every record of some runs as one number, sorted: who made it, and when, does not count."""
    found = [numpy.empty(0, numpy.uint64)]
    for run in runs:
        names = numpy.array([hash(portable_key(key_of(run.definition(number)))) & 0xffffffffffffffff
                             for number in run.ids()], numpy.uint64)
        with numpy.errstate(over="ignore"):
            found.append(names[run.key] * numpy.uint64(0x9e3779b97f4a7c15) ^ run.value)
    return numpy.sort(numpy.concatenate(found))


def _header(path):
    reader = Reader(path)
    reader.close()
    return reader.header
