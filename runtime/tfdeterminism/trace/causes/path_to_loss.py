"""The way from a culprit to the loss: which tensors carry the difference there."""

import collections

from ..faults import CauseKind
from .def_use import DefUseGraph, may_forward

_MAX_PATH = 48  # tensors of a way that are named; of a longer one the ends
_MAX_VISITED = 200000


def find_path_to_loss(pair, root):
    """The definitions on the shortest way from a cause to a loss that differs: [] where it leads to none.

    Beyond a write into a variable the way leads through the next step. Where no loss is recorded, it ends at the
    variable.
    """
    if root.kind is CauseKind.STRUCTURE or root.definition["output"] < 0:
        return []
    came_from, end = _shortest_path(pair, root)
    way = []
    while end is not None:
        way.append(end)
        end = came_from[end["id"]]
    way = [one for one in reversed(way[:-1]) if one["recorded"] and one["kind"] not in ("write", "call")]
    half = _MAX_PATH // 2
    return way if len(way) <= _MAX_PATH else way[:half] + way[-half:]


def _shortest_path(pair, root):
    """(the definition before each, by id; where the way ends)."""
    flow, inside = DefUseGraph(pair.runs[root.side]), _Bodies(pair.runs[root.side])
    came_from, written, end = {root.definition["id"]: None}, set(), root.definition
    walk = collections.deque([root.definition])
    while walk and len(came_from) < _MAX_VISITED:
        one = walk.popleft()
        if one["attrs"].get("loss"):
            return came_from, one
        if one["kind"] == "write":
            written.add(one["id"])
            end = end if end["kind"] == "write" else one
        consumers = flow.successors(one)
        for found in consumers or inside.calls_of(one):
            later = one["id"] in written
            if found["id"] in came_from or not (later or _differs_along(pair, root.side, found)):
                continue
            if later:
                written.add(found["id"])
            came_from[found["id"]] = one
            walk.append(found)
    return came_from, end


def _differs_along(pair, side, one):
    return may_forward(one) or pair.ever_differs(one["id"], side)


class _Bodies(object):
    """Which calls a function's results come out of."""

    def __init__(self, run):
        self._calls = {}
        for one in map(run.definition, run.ids()):
            for body in one["calls"]:
                self._calls.setdefault(tuple(body), []).append(one)

    def calls_of(self, one):
        return self._calls.get((one["function"], one["trace"]), [])
