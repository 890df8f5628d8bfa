"""Def-use graph of a traced run: a trace stores the inputs of each definition; this finds its uses."""

from ..schema import traits


def is_copy(one):
    """Is the output a copy of the input, on another device or in another process?"""
    return traits.COPIES in one["traits"]


def may_forward(one):
    """Can a difference pass through although the recorded output is equal? A callee may write variables."""
    return not one["recorded"] or one["kind"] in ("write", "call") or calls_python(one)


def calls_python(one):
    """Is it an op that calls back into Python? Such a call may write variables and return other values."""
    return one["kind"] == "feed" and bool(one["calls"])


def returns_python_number(one):
    """Does the op return a Python number, and no tensor?"""
    return one["kind"] == "op" and one["output"] >= 0 and not one["dtype"]


class DefUseGraph(object):
    """The uses of each definition of one run, whatever their order in time."""

    def __init__(self, run):
        self._fed, self._arguments, self._reads = {}, {}, {}
        for number in run.ids():
            one = run.definition(number)
            for up in one["inputs"]:
                self._fed.setdefault(up, []).append(one)
            if one["kind"] == "argument":
                self._arguments.setdefault((one["function"], one["trace"]), []).append(one)
            elif one["variable"] and one["kind"] != "write":
                self._reads.setdefault(one["variable"], []).append(one)

    def successors(self, one):
        """The definitions that use a value; of a call also its callee's arguments, of a write the variable's reads."""
        if one["kind"] == "write":
            return self._reads.get(one["variable"], [])
        inside = [argument for body in one["calls"] for argument in self._arguments.get(tuple(body), ())]
        return inside + self._fed.get(one["id"], [])

    def descendants(self, one, passes):
        """All definitions that a value may reach. passes(definition): are its uses followed, too?"""
        walk, seen = [one], {one["id"]}
        while walk:
            for found in self.successors(walk.pop()):
                if found["id"] in seen:
                    continue
                seen.add(found["id"])
                yield found
                if passes(found):
                    walk.append(found)
