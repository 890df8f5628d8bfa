"""The processes of several runs: which belong together, what was only shared out otherwise, and who was first."""

import re

import numpy

from . import advice
from .align import Run, portable
from .format import BadTrace, key_of, trace_files
from .reader import Reader

# What hands on what another process sent: no cause while another process has one.
_RECEIVES = re.compile(r"^(_?Collective|_?Nccl|_?Horovod|_?(Host)?Recv|_?XlaRecv|RemoteCall|Barrier|_?c10d)")
_TICK = 0.05  # seconds; what came from Python may have come from another process just before


class Processes(object):
    """Of one folder. files: {name: path}."""

    def __init__(self, folder):
        self.folder = folder
        self.files = trace_files(folder)
        headers = {name: _header(path) for name, path in self.files.items()}
        self.parents = {name: header.get("parent") for name, header in headers.items()}
        started = [header["started"] for header in headers.values() if header.get("started")]
        self.start = min(started) if len(started) > 1 else None  # one alone needs no order

    def children(self, parent):
        return [name for name in self.files if parent is not None and self.parents[name] == parent]


def of_folders(folders):
    """The Processes of each. Raises BadTrace where they are not those of the same program."""
    found = [Processes(folder) for folder in folders]
    for one in found[1:]:
        lacking = apart(found[0], one)
        strangers = [name for name in lacking if (one if name in one.files else found[0]).parents[name] is None]
        if strangers or not set(found[0].files) & set(one.files):
            raise BadTrace("{} and {} do not have the same processes: {}".format(
                found[0].folder, one.folder, ", ".join(strangers or lacking)), "compare runs of as many processes")
    return found


def apart(left, right):
    """Names of processes that only one of two has."""
    return sorted(set(left.files) ^ set(right.files))


def only_shared_out(left, right, parent):
    """Did the children of this process do the same things together, though maybe not the same one?"""
    sides = [[Run(one.files[name]) for name in one.children(parent)] for one in (left, right)]
    weights = [sorted((run.end or {}).get("weights") or "" for run in runs) for runs in sides]
    if [one for one in weights[0] if one] != [one for one in weights[1] if one]:
        return False
    return numpy.array_equal(*[_all_records(runs) for runs in sides])


def _all_records(runs):
    """Every record of some runs as one number, sorted: who made it, and when, does not count."""
    found = [numpy.empty(0, numpy.uint64)]
    for run in runs:
        names = numpy.array([hash(portable(key_of(run.definition(number)))) & 0xffffffffffffffff
                             for number in run.ids()], numpy.uint64)
        with numpy.errstate(over="ignore"):
            found.append(names[run.key] * numpy.uint64(0x9e3779b97f4a7c15) ^ run.value)
    return numpy.sort(numpy.concatenate(found))


def when(difference):
    """Sorts the Differences of one run's processes: the first cause first."""
    first = (difference.culprits or [{}])[0]
    waits = _TICK if first.get("class") in (advice.FEED, advice.FILE) else 0.0
    return (is_received(difference), difference.moment + waits, difference.first_step or 0)


def is_received(difference):
    return bool(difference.culprits) and bool(_RECEIVES.match(difference.culprits[0]["op_type"]))


def _header(path):
    reader = Reader(path)
    reader.close()
    return reader.header
