"""The search for the forward op of a gradient op: by its record, by the rows of a sparse gradient, or by its type."""

import collections

from ..schema import traits


class ForwardOps(object):
    """Forward ops of the definitions of two runs."""

    def __init__(self, pair):
        self._pair = pair
        self._by_node = {}
        for side in (1, 0):
            run = pair.runs[side]
            for number in run.ids():
                definition = run.definition(number)
                self._by_node.setdefault(definition["node"], []).append((side, definition))

    def find(self, definition, side):
        """Return the definition of the forward op, in the same function if that has it, or None."""
        run = self._pair.runs[side]
        gradient = self._of_rows(definition, run) or definition
        named = self._by_node.get(gradient["forward"], ()) if gradient["forward"] else ()
        candidates = [candidate for op_side, candidate in named if op_side == side]
        in_function = [candidate for candidate in candidates if candidate["function"] == definition["function"]]
        return (in_function or candidates or _unrecorded_forward(gradient) or _by_inputs(definition, run) or [None])[0]

    def _of_rows(self, definition, run):
        """Return a definition that names the forward op of a summed sparse gradient, or None.

        An op that needs a sparse gradient as a dense tensor (another gradient, an optimizer) sums its rows. That sum is
        the gradient of the op that produced the rows and their indices; if there are several, of the first one.
        """
        if traits.SUMS_ROWS not in definition["traits"]:
            return None
        producers = [_gradient_producers(number, run) for number in definition["inputs"]]
        count = collections.Counter(name for names in producers for name in names)
        shared = [name for name in count if count[name] > 1]
        if not shared or definition["forward"] in shared:
            return None
        forward = min(shared, key=self._first_id)
        return next(names[forward] for names in producers if forward in names)

    def _first_id(self, name):
        return min([definition["id"] for _, definition in self._by_node.get(name, ())] or [float("inf")])


def _gradient_producers(number, run):
    """Return {name of a forward op: a definition of its gradient} for the ops that produced a value."""
    pending, visited, producers = [number], set(), {}
    while pending:
        number = pending.pop()
        definition = run.definition(number)
        if number in visited:
            continue
        visited.add(number)
        if definition["forward"]:
            producers[definition["forward"]] = definition
        elif traits.FORWARDS_ROWS in definition["traits"]:
            pending.extend(definition["inputs"])
    return producers


def _unrecorded_forward(gradient):
    """Return [a definition of a forward op that never ran], made of what its gradient's definition says, or []."""
    if not gradient["forward"] or not gradient["forward_stack"]:
        return []
    stack = gradient["forward_stack"]
    op_type = gradient["attrs"].get("forward_type") or "an op"
    return [dict(gradient, op=op_type, node=gradient["forward"], stack=stack, file=stack[0][0], line=stack[0][1])]


def _by_inputs(definition, run):
    """Return [the latest op before an eager gradient that its type names and that shares an input], or []."""
    family = definition["attrs"].get("gradient_of")
    if family is None:
        return []
    inputs = set(definition["inputs"])
    earlier = (run.definition(number) for number in range(definition["id"] - 1, -1, -1))
    return [op for op in earlier
            if op["op"] != definition["op"] and family == op["attrs"].get("family", op["op"])
            and inputs & set(op["inputs"])][:1]
