"""A cause, and where in the program its definition lies.

A definition is what a trace says once of an op or value; a record is one of its executions (trace.schema.format). In
the comparison of two runs a group has the records of one definition, and a slot those that correspond to each other.
A definition's "trace" numbers the graph functions of one name; it is 0 for eager ops.
"""

import re

from ..faults import CauseKind

_NUMBER = re.compile(r"#\d+$")  # the end of an eager op's node name, OP@FILE:LINE#N: the number of its occurrence
_TASK = re.compile(r"task [\d.]+ of ")


class Cause(object):
    """A cause of a difference.

    group, slot: of its record in an align.table.AlignedPair (slot is None for a write, which has none of its own);
    side: index of the run that has the definition; kind: a CauseKind (VALUE: its inputs agree, its
    output differs); order: the record's place in that run's file.
    """

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
        """Whether the value was made before recording began, or by an op that was not recorded."""
        return self.kind in (CauseKind.VALUE, CauseKind.UNEXPLAINED, CauseKind.UNRECORDED_WRITE) and (
            self.definition["kind"] == "read" or bool(self.definition["attrs"].get("preexisting")))


def in_graph(definition):
    """Return whether the op belongs to a graph, as opposed to an op that ran eagerly."""
    return not ("@" in definition["node"] and _NUMBER.search(definition["node"]))


def is_of_task(definition):
    """Return whether the op ran in a task of a thread pool."""
    return bool(_TASK.match(definition["thread"]))


def without_occurrence(node):
    """Return the name of an op; for an eager op without the number of its occurrence."""
    return _NUMBER.sub("", node) if "@" in node else node


def line_key(definition):
    """Return the key that eager records of the same line of the program share."""
    return (definition["thread"], definition["replica"], definition["function"], definition["trace"],
            _NUMBER.sub("", definition["node"]), definition["output"])


def program_location(root):
    """Return the key under which several outputs of one op, or iterations of one line, are one cause. root: a Cause."""
    definition = root.definition
    return (definition["function"], definition["trace"], _NUMBER.sub("", definition["node"]), definition["replica"],
            definition["thread"])
