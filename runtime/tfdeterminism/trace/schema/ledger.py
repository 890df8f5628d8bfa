"""The reader of the ledgers that the interpose package wrote of a run, one for each process in one folder.

A ledger lists the calls that gave the program a value that another run could get otherwise.
"""

import io
import json
import os

PREFIX = "ledger-"
RANK = "rank"  # prefix of the position of a process that a launcher gave a rank
UNKNOWN_PLACE = "-"
IMPORT = " (import)"  # suffix of a place if an import lies between it and the call
CHILD = " (child)"  # suffix of the place of a line that started the process which made the call
STEPS = "steps"  # `kind` of the row that counts the steps of optimizers, which nothing nondeterministic enters
_GLOBAL = "global:"  # prefix of the place of a global generator of random numbers, such as that of NumPy


class LedgerRow(object):
    """The calls of one function at one line in one process.

    kind: of interpose.kinds; place: "FILE:LINE", a global generator, or UNKNOWN_PLACE; what: the function; count:
    number of calls; held: number of calls that got a pinned value; values: the first ones, as text; digest: of all, in
    their order; position: of the process in the tree of processes.
    """

    def __init__(self, fields):
        self.kind, self.place, self.what = str(fields["kind"]), str(fields["place"]), str(fields["what"])
        self.count, self.held = int(fields["count"]), int(fields["held"])
        self.values, self.digest = [str(value) for value in fields["values"]], str(fields["digest"])
        self.position = str(fields["position"])

    @property
    def rank(self):
        """The rank of the process, or of the one that started it; "" if no launcher gave one."""
        top = self.position.partition(".")[0]
        return top[len(RANK) :] if top.startswith(RANK) else ""

    @property
    def is_in_user_code(self):
        """Whether the place is a line of the user's program, and not an import."""
        return is_user_line(self.place)

    @property
    def is_global(self):
        """Whether the place is a global generator."""
        return self.place.startswith(_GLOBAL)


def read_ledgers(folder):
    """Return the LedgerRows of all processes of a run. Truncated files are skipped."""
    rows = []
    for name in sorted(os.listdir(folder)):
        if name.startswith(PREFIX) and name.endswith(".json"):
            try:
                with io.open(os.path.join(folder, name), encoding="utf-8") as source:
                    rows += [LedgerRow(fields) for fields in json.load(source)]
            except (ValueError, KeyError, TypeError):
                continue
    return rows


def is_user_line(place):
    """Return whether a place is a line of the user's program, without an import between it and the call."""
    return place != UNKNOWN_PLACE and IMPORT not in place and not place.startswith(_GLOBAL)


def split_place(place):
    """Return (file, line) of "FILE:LINE", ("", 0) for a place that is not a line."""
    file, _, line = place.partition(IMPORT)[0].partition(CHILD)[0].rpartition(":")
    return (file, int(line)) if file and line.isdigit() else ("", 0)
