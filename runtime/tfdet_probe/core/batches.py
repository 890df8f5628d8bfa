"""Do the bytes of a row depend on the rows that it shares its batch with?

python -m tfdet_probe.core.batches SUITE [--device DEVICE] [--threads N] [--environment KEY] [--case REGEX] > FILE

SUITE: the folder of a framework's cases; its module `batches` holds CASES, and says how a batch is made and run.  This
is no question of determinism: a row may be the same in every run, and another one in another company.  One line of JSON
a case: the row alone, and in each size of batch at its start, in its middle and at its end, among two fillings of
other rows; batches of the first filling run twice, for what differs by itself shows nothing of its company.
"""

import argparse
import hashlib
import importlib
import io
import json
import os
import re
import sys
import time
import tokenize
from typing import TYPE_CHECKING

from tfdet_common.machine import told_by

if TYPE_CHECKING:  # for type comments alone
    from typing import Any, Dict, List  # noqa: F401

# A suite's module `batches` has CASES, {name: case}, whose case.on(device) is what measure() asks; DEVICE, the default;
# told(device), the fields of a result about the framework and the machine; use_threads(count).  A case also has
# op, shape, dtype and control: whether it depends on its batch by construction.
SCHEMA = 1
SIZES = (2, 3, 4, 8, 16, 17, 32, 64, 128, 257)
FILLINGS = (1, 2)  # seeds of other rows
UNSTEADY = "unsteady"  # a batch that ran twice gave other bytes: what they depend on is not known
NO_DEVICE = 4  # exit code
MOST_WORDS = 200  # characters of an error that a result keeps


def measure(case, sizes=SIZES):
    """What the row's bytes depend on.

    case: rows(count, seed) are `count` rows; joined(some, row, at) puts a row among others; run(batch) gives what comes
    out, of which part(out, at) is a row's; bytes_of(part), and apart(one, other) is how far two of them are.
    """
    row = case.rows(1, 0)
    alone = case.part(case.run(row), 0)
    seen = _Seen(case, alone)
    seen.steady = case.bytes_of(case.part(case.run(row), 0)) == seen.alone
    fillings = [case.rows(max(sizes) - 1, seed) for seed in FILLINGS]
    for size in sizes:
        for at in sorted({0, size // 2, size - 1}):
            for number, filling in enumerate(fillings):
                seen.batch(case.joined(case.first(filling, size - 1), row, at), size, at, twice=not number)
    return seen.found()


class _Seen(object):
    def __init__(self, case, alone):
        self.case, self.first, self.alone = case, alone, case.bytes_of(alone)
        self.steady, self.runs, self.furthest = True, 2, 0.0
        self.by_size = {}  # type: Dict[int, Dict[int, List[bytes]]]  # size: position: bytes, a filling each

    def batch(self, batch, size, at, twice):
        part = self.case.part(self.case.run(batch), at)
        found = self.case.bytes_of(part)
        if twice:
            self.steady = self.steady and found == self.case.bytes_of(self.case.part(self.case.run(batch), at))
        self.runs += 1 + twice
        if found != self.alone:
            self.furthest = max(self.furthest, self.case.apart(self.first, part))
        self.by_size.setdefault(size, {}).setdefault(at, []).append(found)

    def found(self):
        depends = []
        if self.differing():
            depends.append("size")
        if any(len({one[0] for one in places.values()}) > 1 for places in self.by_size.values()):
            depends.append("position")
        if any(len(set(one)) > 1 for places in self.by_size.values() for one in places.values()):
            depends.append("others")
        return {"sizes": sorted(self.by_size), "differs": self.differing(), "runs": self.runs,
                "depends_on": depends if self.steady else [UNSTEADY], "max_absolute": self.furthest,
                "digest": hashlib.sha256(self.alone).hexdigest()[:16]}

    def differing(self):
        """The sizes in which some row is another one than alone."""
        return sorted(size for size, places in self.by_size.items()
                      if any(found != self.alone for one in places.values() for found in one))


def method(*paths):
    """A hash of what a result comes from: of tokens, for a comment changes nothing."""
    digest = hashlib.sha256()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    for path in paths:
        with io.open(path, "rb") as source:
            for token in tokenize.tokenize(source.readline):
                if token.type not in skipped:
                    digest.update(token.string.encode("utf-8") + b"\0")
    return digest.hexdigest()[:16]


def record(module, key, asked):
    started = time.time()
    found = {"sizes": [], "differs": [], "runs": 0, "depends_on": [], "max_absolute": 0.0, "digest": "",
             "error": ""}  # type: Dict[str, Any]
    try:
        found.update(measure(module.CASES[key].on(asked.device), asked.sizes or SIZES))
    except Exception as error:  # no kernel for that dtype, no memory: recorded, and the other cases go on
        found["error"] = "{}: {}".format(type(error).__name__, error).split("\n")[0][:MOST_WORDS]
    case = module.CASES[key]
    found.update(schema=SCHEMA, environment=asked.environment, case=key, op=case.op, shape=case.shape,
                 dtype=case.dtype, control=case.control, method=method(__file__, module.__file__),
                 threads="one" if asked.threads == 1 else "default",
                 started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
                 duration_seconds=round(time.time() - started, 3))
    found.update(module.told(asked.device))
    found["machine"].update(processor=told_by("/proc/cpuinfo", r"^model name\s*:\s*(.+)$", re.M) or "unknown",
                            cores=len(os.sched_getaffinity(0)))
    return found


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m tfdet_probe.core.batches", description=__doc__.split("\n")[0])
    parser.add_argument("suite", metavar="SUITE")
    parser.add_argument("--device", help="as the framework calls it; its first one where none is named")
    parser.add_argument("--threads", type=int, default=0, help="1: on one thread")
    parser.add_argument("--environment", default="unknown")
    parser.add_argument("--case", default=".*", help="of the names of cases")
    parser.add_argument("--size", type=int, action="append", dest="sizes", help="instead of all (again: several)")
    asked = parser.parse_args(arguments)
    sys.path.insert(0, asked.suite)
    module = importlib.import_module("batches")
    asked.device = asked.device or module.DEVICE
    try:
        module.told(asked.device)
    except Exception as error:
        sys.stderr.write("no device {}: {}\n".format(asked.device, str(error).split("\n")[0]))
        return NO_DEVICE
    if asked.threads:
        module.use_threads(asked.threads)
    for key in sorted(module.CASES):
        if re.search(asked.case, key):
            print(json.dumps(record(module, key, asked), sort_keys=True))
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
