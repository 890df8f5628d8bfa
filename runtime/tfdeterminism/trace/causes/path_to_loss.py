"""The path from a cause to the loss: the tensors that carry the difference there."""

import collections

from ..faults import CauseKind
from .def_use import DefUseGraph, may_forward

_MAX_PATH = 48  # tensors of a path that are reported; of a longer path, those at both ends
_MAX_VISITED = 200000


def find_path_to_loss(pair, root):
    """Return the definitions on the shortest path from a cause to a loss that differs, [] if there is none.

    pair: an align.table.AlignedPair of two runs; root: a Cause, whose `side` is the run that has its definition.
    Beyond a write into a variable the path leads through the next step. If no loss is recorded, it ends at the
    variable.
    """
    if root.kind is CauseKind.STRUCTURE or root.definition["output"] < 0:
        return []
    predecessors, end = _shortest_path(pair, root)
    path = []
    while end is not None:
        path.append(end)
        end = predecessors[end["id"]]
    path = [definition for definition in reversed(path[:-1])
            if definition["recorded"] and definition["kind"] not in ("write", "call")]
    half = _MAX_PATH // 2
    return path if len(path) <= _MAX_PATH else path[:half] + path[-half:]


def _shortest_path(pair, root):
    """Return ({id: the definition before it on the path}, the last definition of the path)."""
    uses, bodies = DefUseGraph(pair.runs[root.side]), _Bodies(pair.runs[root.side])
    predecessors, written_ids, end = {root.definition["id"]: None}, set(), root.definition
    queue = collections.deque([root.definition])
    while queue and len(predecessors) < _MAX_VISITED:
        definition = queue.popleft()
        if definition["attrs"].get("loss"):
            return predecessors, definition
        if definition["kind"] == "write":
            written_ids.add(definition["id"])
            end = end if end["kind"] == "write" else definition
        consumers = uses.successors(definition)
        for consumer in consumers or bodies.calls_of(definition):
            is_after_write = definition["id"] in written_ids
            if consumer["id"] in predecessors or not (is_after_write or _differs_along(pair, root.side, consumer)):
                continue
            if is_after_write:
                written_ids.add(consumer["id"])
            predecessors[consumer["id"]] = definition
            queue.append(consumer)
    return predecessors, end


def _differs_along(pair, side, definition):
    return may_forward(definition) or pair.ever_differs(definition["id"], side)


class _Bodies(object):
    """The calls of each function body, whose results leave the body there."""

    def __init__(self, run):
        self._calls = {}
        for definition in map(run.definition, run.ids()):
            for body in definition["calls"]:
                self._calls.setdefault(tuple(body), []).append(definition)

    def calls_of(self, definition):
        return self._calls.get((definition["function"], definition["trace"]), [])
