"""What the rules ask about a cause: where its value comes from, and what else was done with it."""

from ..schema import traits
from . import files_read
from .def_use import DefUseGraph
from .forward_ops import ForwardOps
from .variable_writes import reads_any_of, unordered_variables

_MAX_HOPS = 10  # ops between a seed from Python and what draws with it


class PairFacts(object):
    """What is found out once for two runs. pair: an align.table.AlignedPair."""

    def __init__(self, pair):
        self.pair = pair
        self.forwards = ForwardOps(pair)
        self.files = files_read.ChangedFiles(pair)
        self._flows = {}

    def flow(self, side):
        """The DefUseGraph of one run."""
        if side not in self._flows:
            self._flows[side] = DefUseGraph(self.pair.runs[side])
        return self._flows[side]


class CauseFacts(object):
    """Of one cause. cause: a cause.Cause; definition: of its op; run: the one whose definition it is."""

    def __init__(self, shared, cause):
        self.cause, self.definition = cause, cause.definition
        self.run = shared.pair.runs[cause.side]
        self._shared = shared

    def forward(self):
        """The definition of the op whose gradient it is, or None."""
        return self._shared.forwards.find(self.definition, self.cause.side)

    def is_from_host(self):
        """Has no op made this value, but Python, or whoever called?"""
        return self.definition["kind"] in ("feed", "argument") or traits.READS_HOST in self.definition["traits"]

    def is_from_file(self):
        """Does this value come from a file that was not the same in both runs?"""
        return traits.LOADS in self.definition["traits"] or self._shared.files.file_of_value(self.cause) is not None

    def ran_unordered(self):
        """At the level "unordered" only that is recorded, and only where all else agrees."""
        return self.run.header.get("level") == "unordered" and bool(self.definition["attrs"].get("unordered"))

    def reads_unordered_variable(self):
        """Does it get a variable that another op writes, before or after?"""
        return reads_any_of(self.definition, self.run, unordered_variables(self.run))

    def upstream(self):
        """What feeds it and has no records, such as the stages of a pipeline behind an iterator: nearest first."""
        seen, walk, found = set(), list(self.definition["inputs"]), []
        while walk:
            number = walk.pop(0)
            one = self.run.definition(number)
            if number not in seen and not one["recorded"]:
                found.append(one)
                walk.extend(one["inputs"])
            seen.add(number)
        return found

    def pipeline(self):
        """The stages of the pipeline behind an iterator; where nothing tells, all that were made before it."""
        found = [one for one in self.upstream() if {traits.PIPELINE, traits.SEED_GENERATOR} & set(one["traits"])]
        before = (self.run.definition(number) for number in self.run.ids() if number < self.definition["id"])
        return found or [one for one in before if traits.PIPELINE in one["traits"]]

    def seeded_op(self):
        """The definition of the random op whose seed this value is, or None.

        A few casts may lie between, a variable that keeps the seed, a function that gets it.
        """
        pair, side = self._shared.pair, self.cause.side
        wave, seen = [self.definition], set()
        for _ in range(_MAX_HOPS):
            fed = [one for up in wave for one in self._shared.flow(side).successors(up) if one["id"] not in seen]
            random = [one for one in fed if one["kind"] == "random" or traits.RANDOM in one["traits"]]
            if random:
                return random[0]
            seen.update(one["id"] for one in fed)
            wave = [one for one in fed if one["kind"] in ("call", "write") or traits.SEED_ARITHMETIC in one["traits"]
                    or one["kind"] in ("argument", "read") and pair.ever_differs(one["id"], side)]
        return None

    def callers(self):
        """The calls of the function that it lies in, as far as a line of the program is known of them."""
        body = [self.definition["function"], self.definition["trace"]]
        calls = (self.run.definition(number) for number in self.run.ids())
        return [one for one in calls if body in one["calls"] and one["file"]]

    def users(self):
        """The types of the ops that get a value from Python: [] for any other."""
        if self.definition["kind"] not in ("feed", "argument"):
            return []
        fed = (self.run.definition(number) for number in self.run.ids())
        used = {one["op"] for one in fed if self.definition["id"] in one["inputs"]}
        return sorted(used - {self.definition["op"]})[:4]
