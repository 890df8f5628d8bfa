"""The facts about a cause that the rules use: where its value comes from, and which other ops use it."""

from ..schema import traits
from . import files_read
from .def_use import DefUseGraph
from .forward_ops import ForwardOps
from .variable_writes import reads_any_of, unordered_variables

_MAX_HOPS = 10  # ops between a seed from Python and what draws with it


class PairFacts(object):
    """Facts that are computed once for two runs. pair: an align.table.AlignedPair."""

    def __init__(self, pair):
        self.pair = pair
        self.forwards = ForwardOps(pair)
        self.files = files_read.ChangedFiles(pair)
        self._flows = {}

    def flow(self, side):
        """Return the DefUseGraph of one run."""
        if side not in self._flows:
            self._flows[side] = DefUseGraph(self.pair.runs[side])
        return self._flows[side]


class CauseFacts(object):
    """The facts about one cause.

    shared: a PairFacts; cause: a cause.Cause; definition: of its op; run: the run that has the definition.
    """

    def __init__(self, shared, cause):
        self.cause, self.definition = cause, cause.definition
        self.run = shared.pair.runs[cause.side]
        self._shared = shared

    def forward(self):
        """Return the definition of the op whose gradient the cause is, or None."""
        return self._shared.forwards.find(self.definition, self.cause.side)

    def is_from_host(self):
        """Return whether Python, or the caller of the function, made the value, and no op did."""
        return self.definition["kind"] in ("feed", "argument") or traits.READS_HOST in self.definition["traits"]

    def is_from_file(self):
        """Return whether the value comes from a file that differed between the runs."""
        return traits.LOADS in self.definition["traits"] or self._shared.files.file_of_value(self.cause) is not None

    def ran_unordered(self):
        """Return whether the trace records only unordered ops, and this is one of them."""
        return self.run.header.get("level") == "unordered" and bool(self.definition["attrs"].get("unordered"))

    def reads_unordered_variable(self):
        """Return whether the op uses a variable that another op writes before or after it."""
        return reads_any_of(self.definition, self.run, unordered_variables(self.run))

    def upstream(self):
        """Return the definitions without records that feed the op, such as pipeline stages, the nearest first."""
        visited, pending, sources = set(), list(self.definition["inputs"]), []
        while pending:
            number = pending.pop(0)
            definition = self.run.definition(number)
            if number not in visited and not definition["recorded"]:
                sources.append(definition)
                pending.extend(definition["inputs"])
            visited.add(number)
        return sources

    def pipeline(self):
        """Return the pipeline stages behind an iterator, or all earlier stages if its stages are unknown."""
        stages = [op for op in self.upstream() if {traits.PIPELINE, traits.SEED_GENERATOR} & set(op["traits"])]
        earlier = (self.run.definition(number) for number in self.run.ids() if number < self.definition["id"])
        return stages or [op for op in earlier if traits.PIPELINE in op["traits"]]

    def seeded_op(self):
        """Return the definition of the random op whose seed this value is, or None.

        Casts, a variable that keeps the seed, and a function that receives it may lie between the value and the op.
        """
        pair, side = self._shared.pair, self.cause.side
        wave, visited = [self.definition], set()  # breadth-first search
        for _ in range(_MAX_HOPS):
            uses = (op for producer in wave for op in self._shared.flow(side).successors(producer))
            consumers = [op for op in uses if op["id"] not in visited]
            random_ops = [op for op in consumers if op["kind"] == "random" or traits.RANDOM in op["traits"]]
            if random_ops:
                return random_ops[0]
            visited.update(op["id"] for op in consumers)
            wave = [op for op in consumers if op["kind"] in ("call", "write") or traits.SEED_ARITHMETIC in op["traits"]
                    or op["kind"] in ("argument", "read") and pair.ever_differs(op["id"], side)]
        return None

    def callers(self):
        """Return the calls of the function that contains the op, if their lines in the program are known."""
        body = [self.definition["function"], self.definition["trace"]]
        calls = (self.run.definition(number) for number in self.run.ids())
        return [call for call in calls if body in call["calls"] and call["file"]]

    def users(self):
        """Return the types of the ops that use a value from Python, at most four; [] for other values."""
        if self.definition["kind"] not in ("feed", "argument"):
            return []
        definitions = (self.run.definition(number) for number in self.run.ids())
        op_types = {definition["op"] for definition in definitions if self.definition["id"] in definition["inputs"]}
        return sorted(op_types - {self.definition["op"]})[:4]
