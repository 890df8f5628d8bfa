"""A cause, and what its definition says of where it is."""

import re

from ..faults import CauseKind

_NUMBER = re.compile(r"#\d+$")
_TASK = re.compile(r"task [\d.]+ of ")


class Cause(object):
    """A cause. group, slot: its record (slot None: it has none of its own, a write); side: the run
    whose definition it is; kind: a CauseKind."""

    def __init__(self, kind, side, definition, step, order, group, slot=None):
        self.kind = kind
        self.side = side
        self.definition = definition
        self.step = step
        self.order = order
        self.group = group
        self.slot = slot

    @property
    def is_state(self):
        """Is it only what something before it must have made, unseen?"""
        return self.kind in (CauseKind.VALUE, CauseKind.UNEXPLAINED, CauseKind.UNRECORDED_WRITE) and (
            self.definition["kind"] == "read" or bool(self.definition["attrs"].get("preexisting")))


def in_graph(definition):
    """Is it an op of a graph, whose wiring is fixed, and not one that ran eagerly?"""
    return not ("@" in definition["node"] and _NUMBER.search(definition["node"]))


def is_of_task(definition):
    """Was it made in a task of a pool of threads?"""
    return bool(_TASK.match(definition["thread"]))


def without_occurrence(node):
    """The name of an op; of one that ran eagerly without the number of its turn."""
    return _NUMBER.sub("", node) if "@" in node else node


def line_key(definition):
    """What eager records of one line of the program share."""
    return (definition["thread"], definition["replica"], definition["function"], definition["trace"],
            _NUMBER.sub("", definition["node"]), definition["output"])


def program_location(root):
    """Several outputs of one op, or turns of one line, are one cause."""
    one = root.definition
    return (one["function"], one["trace"], _NUMBER.sub("", one["node"]), one["replica"], one["thread"])
