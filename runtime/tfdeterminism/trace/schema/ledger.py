"""What the interpose package wrote of a run: ledgers of its processes, in one folder."""

import io
import json
import os

PREFIX = "ledger-"
RANK = "rank"  # begins the position of a process that a launcher gave a rank
UNKNOWN_PLACE = "-"
IMPORT = " (import)"  # ends a place between which and the call lies an import
_GLOBAL = "global:"  # begins the place of a global generator


class LedgerRow(object):
    """What entered one process at one line by one call.

    kind: of interpose.kinds; place: "FILE:LINE", a global generator, or UNKNOWN_PLACE; what: was called; count: how
    often; held: how often a pin gave it; values: the first ones, as text; digest: of all, in their order; position:
    of the process in the tree of processes.
    """

    def __init__(self, said):
        self.kind, self.place, self.what = str(said["kind"]), str(said["place"]), str(said["what"])
        self.count, self.held = int(said["count"]), int(said["held"])
        self.values, self.digest = [str(one) for one in said["values"]], str(said["digest"])
        self.position = str(said["position"])

    @property
    def rank(self):
        """Of the process or of the one that started it, "" where no launcher gave one."""
        top = self.position.partition(".")[0]
        return top[len(RANK) :] if top.startswith(RANK) else ""

    @property
    def is_users(self):
        """Was it a line of the user's, and no import?"""
        return is_users_line(self.place)

    @property
    def is_global(self):
        """Is its place a global generator?"""
        return self.place.startswith(_GLOBAL)


def read_ledgers(folder):
    """The LedgerRows of all processes of a run. What was cut off is passed by."""
    rows = []
    for name in sorted(os.listdir(folder)):
        if name.startswith(PREFIX) and name.endswith(".json"):
            try:
                with io.open(os.path.join(folder, name), encoding="utf-8") as source:
                    rows += [LedgerRow(said) for said in json.load(source)]
            except (ValueError, KeyError, TypeError):
                continue
    return rows


def is_users_line(place):
    """Is it a line of the user's, between which and the call lies no import?"""
    return place != UNKNOWN_PLACE and IMPORT not in place and not place.startswith(_GLOBAL)


def split_place(place):
    """(file, line) of "FILE:LINE", ("", 0) for a place that is no line."""
    file, _, line = place.partition(IMPORT)[0].rpartition(":")
    return (file, int(line)) if file and line.isdigit() else ("", 0)
