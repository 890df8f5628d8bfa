"""Def-use graph of a traced run: a trace stores the inputs of each definition; the graph adds its uses."""

from ..schema import traits


def is_copy(definition):
    """Return whether the op copies its input to another device or another process."""
    return traits.COPIES in definition["traits"]


def may_forward(definition):
    """Return whether a difference can pass through although the recorded output is equal.

    A callee may write variables.
    """
    return not definition["recorded"] or definition["kind"] in ("write", "call") or calls_python(definition)


def calls_python(definition):
    """Return whether the op calls back into Python, which may write variables and return other values."""
    return definition["kind"] == "feed" and bool(definition["calls"])


def returns_python_number(definition):
    """Return whether the op returns a Python number and not a tensor."""
    return definition["kind"] == "op" and definition["output"] >= 0 and not definition["dtype"]


class DefUseGraph(object):
    """The uses of each definition of one run, whatever their order in time."""

    def __init__(self, run):
        # Uses by the id of the input, by function body (its name and the number of its trace), and by variable.
        self._fed, self._arguments, self._reads = {}, {}, {}
        for number in run.ids():
            definition = run.definition(number)
            for producer in definition["inputs"]:
                self._fed.setdefault(producer, []).append(definition)
            if definition["kind"] == "argument":
                self._arguments.setdefault((definition["function"], definition["trace"]), []).append(definition)
            elif definition["variable"] and definition["kind"] != "write":
                self._reads.setdefault(definition["variable"], []).append(definition)

    def successors(self, definition):
        """Return the definitions that use a value.

        For a call these include the callee's arguments; for a write they are the reads of the variable.
        """
        if definition["kind"] == "write":
            return self._reads.get(definition["variable"], [])
        arguments = [argument for body in definition["calls"] for argument in self._arguments.get(tuple(body), ())]
        return arguments + self._fed.get(definition["id"], [])

    def descendants(self, definition, passes):
        """Yield all definitions that a value may reach. passes(definition): whether its uses are followed, too."""
        pending, visited = [definition], {definition["id"]}
        while pending:
            for use in self.successors(pending.pop()):
                if use["id"] in visited:
                    continue
                visited.add(use["id"])
                yield use
                if passes(use):
                    pending.append(use)
