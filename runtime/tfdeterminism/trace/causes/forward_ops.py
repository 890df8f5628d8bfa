"""Finds the forward op of a gradient op: by what was recorded, by the rows of a sparse gradient, or by its type."""

import collections

from ..schema import traits


class ForwardOps(object):
    """Forward ops of the definitions of two runs."""

    def __init__(self, pair):
        self._pair = pair
        self._by_node = {}
        for side in (1, 0):  # where both have it, the first run's
            run = pair.runs[side]
            for number in run.ids():
                one = run.definition(number)
                self._by_node.setdefault(one["node"], []).append((side, one))

    def find(self, definition, side):
        """The definition of the forward op, or None: of the same function if that has it."""
        run = self._pair.runs[side]
        told = self._of_rows(definition, run) or definition
        found = [one for mine, one in self._by_node.get(told["forward"], ()) if mine == side] if told["forward"] else []
        mine = [one for one in found if one["function"] == definition["function"]]
        return (mine or found or _unrecorded_forward(told) or _by_inputs(definition, run) or [None])[0]

    def _of_rows(self, definition, run):
        """A definition that names the forward op of a summed sparse gradient, or None.

        An op that needs a sparse gradient as a dense tensor (another gradient, an optimizer) sums its rows. That sum is
        the gradient of the op that produced the rows and their indices; if there are several, of the first one.
        """
        if traits.SUMS_ROWS not in definition["traits"]:
            return None
        given = [_gradient_producers(number, run) for number in definition["inputs"]]
        count = collections.Counter(name for names in given for name in names)
        both = [name for name in count if count[name] > 1]
        if not both or definition["forward"] in both:
            return None
        first = min(both, key=lambda name: min([one["id"] for _, one in self._by_node.get(name, ())] or [float("inf")]))
        return next(names[first] for names in given if first in names)


def _gradient_producers(number, run):
    """{name of a forward op: a definition of its gradient} of the ops that produced this value."""
    walk, seen, found = [number], set(), {}
    while walk:
        number = walk.pop()
        one = run.definition(number)
        if number in seen:
            continue
        seen.add(number)
        if one["forward"]:
            found[one["forward"]] = one
        elif traits.FORWARDS_ROWS in one["traits"]:
            walk.extend(one["inputs"])
    return found


def _unrecorded_forward(told):
    """The forward op where nobody needs its value, so that it never ran: what its gradient's op knows of it."""
    if not told["forward"] or not told["forward_stack"]:
        return []
    stack = told["forward_stack"]
    op_type = told["attrs"].get("forward_type") or "an op"
    return [dict(told, op=op_type, node=told["forward"], stack=stack, file=stack[0][0], line=stack[0][1])]


def _by_inputs(definition, run):
    """Of an eager gradient: the latest op before it that its own type names, with an input in common."""
    family = definition["attrs"].get("gradient_of")
    if family is None:
        return []
    mine = set(definition["inputs"])
    before = (run.definition(number) for number in range(definition["id"] - 1, -1, -1))
    return [one for one in before
            if one["op"] != definition["op"] and family == one["attrs"].get("family", one["op"])
            and mine & set(one["inputs"])][:1]
