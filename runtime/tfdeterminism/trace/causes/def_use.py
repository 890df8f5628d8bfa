"""Where values go: the other direction of a trace's definitions, which say where values come from."""

from ..schema import traits


def is_copy(one):
    """Is what it gives but what it got, in another place or another process?"""
    return traits.COPIES in one["traits"]


def may_forward(one):
    """May a value go on from here though no record of it differs? It may be written by what is called."""
    return not one["recorded"] or one["kind"] in ("write", "call") or calls_python(one)


def calls_python(one):
    """Is it an op that calls a function of the program? That may write variables, and put out something else."""
    return one["kind"] == "feed" and bool(one["calls"])


def returns_python_number(one):
    """Is it an op that gives Python a number, and no tensor?"""
    return one["kind"] == "op" and one["output"] >= 0 and not one["dtype"]


class DefUseGraph(object):
    """Where the values of one run go."""

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
        """The definitions that a value goes into; of a call the arguments, of a write the reads."""
        if one["kind"] == "write":
            return self._reads.get(one["variable"], [])
        inside = [argument for body in one["calls"] for argument in self._arguments.get(tuple(body), ())]
        return inside + self._fed.get(one["id"], [])

    def descendants(self, one, passes):
        """All definitions that a value may reach. passes(definition): does it go on from there?"""
        walk, seen = [one], {one["id"]}
        while walk:
            for found in self.successors(walk.pop()):
                if found["id"] in seen:
                    continue
                seen.add(found["id"])
                yield found
                if passes(found):
                    walk.append(found)
