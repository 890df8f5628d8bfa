"""A cause in the words of its user: class, place in the program, row of the matrix, what to change."""

from . import advice, files_read
from .cause import in_graph
from .def_use import Flow
from .forward_ops import Forwards
from .variable_writes import gets_one_of, written_in_any_order

_FEED_OPS = frozenset("""Const Placeholder PlaceholderWithDefault PlaceholderV2 PyFunc EagerPyFunc PyFuncStateless _Arg
    _Recv""".split())
_PARALLEL = ("ParallelMap", "ParallelInterleave", "ParallelBatch", "MapAndBatch", "LegacyParallelInterleave",
             "ExperimentalParallelInterleave", "NumaMapAndBatch", "ExperimentalNumaMapAndBatch")
_SEED_ARITHMETIC = frozenset("Cast FloorMod Mod AddV2 Add Mul Pack ConcatV2 Reshape Identity BitwiseXor".split())
_HOPS = 10
_DRAWS = ("StatefulUniform", "StatefulStandardNormal", "StatefulTruncatedNormal", "RngSkip", "RngReadAndSkip")
_RACES_OF_WRITES = ("Assign", "AssignAdd", "AssignSub")  # of reference variables, in a session
_FILES = ("Restore", "ReadFile", "WholeFileRead", "ReaderRead", "MatchingFiles")


UNEXPLAINED = "the first record that differs; no record stands out as the cause"
_DIFFERS = "its inputs agree, its output differs"
BEFORE = "it differs already when recording begins"


class Describer(object):
    """Of the roots of one pair. header: of its first trace."""

    def __init__(self, pair):
        self._pair = pair
        self._book = advice.Book(pair.runs[0].header)
        self._forwards = Forwards(pair)
        self._flows = {}
        self._files = files_read.Unlike(pair)

    def culprit(self, root):
        """The dict that `diff --json` gives for a root."""
        one = root.definition
        forward = self._forward(root)
        place = self._place(root, forward)
        kind, source = self._class(root)
        found = self._book.advise(kind, source, one["device"], one["op"])
        named = self._seeds(root) if kind == advice.SEED and one["kind"] == "feed" else None
        named = named or one  # a seed from Python: the op that draws with it
        return {
            "op_type": named["op"], "op_name": named["node"], "output": one["output"], "device": one["device"],
            "step": root.step, "occurrence": self._occurrence(root), "file": place["file"], "line": place["line"],
            "stack": place["stack"], "forward_op": forward["op"] if forward else None,
            "forward_name": forward["node"] if forward else None,
            "function": one["function"], "layer": one["layer"], "replica": one["replica"], "thread": one["thread"],
            "variable": one["variable"], "used_by": self._used_by(root), "dtype": one["dtype"],
            "shape": one["shape"], "class": kind,
            "why": self._why(root, kind), "source": found.source, "solution": found.solution, "lines": found.lines,
            "advice": "; ".join(line for line in [found.text] + found.lines if line), "run": "AB"[root.side],
        }

    def _occurrence(self, root):
        """How many records of its run with this key were made before."""
        made = self._pair.order[root.side][self._pair.slots(root.group)]
        return None if root.slot is None else int((made < root.order).sum())

    def _forward(self, root):
        """The definition of the op whose gradient it is, or None."""
        return self._forwards.of(root.definition, root.side)

    def _place(self, root, forward):
        """Whose file, line and stack the user should look at."""
        one = root.definition
        if forward and forward["file"]:
            return forward
        if one["kind"] == "input":
            parallel = [up for up in self._datasets(root) if up["op"].startswith(_PARALLEL) and up["file"]]
            return (parallel or [one])[0]
        return one if one["file"] else (self._callers(root) or [one])[0]

    def _callers(self, root):
        body = [root.definition["function"], root.definition["trace"]]
        run = self._pair.runs[root.side]
        calls = [run.definition(number) for number in run.ids()]
        return [one for one in calls if body in one["calls"] and one["file"]]

    def _upstream(self, root):
        """What feeds it and has no records, such as the datasets behind an iterator: nearest first."""
        run = self._pair.runs[root.side]
        seen, walk, found = set(), list(root.definition["inputs"]), []
        while walk:
            number = walk.pop(0)
            one = run.definition(number)
            if number not in seen and not one["recorded"]:
                found.append(one)
                walk.extend(one["inputs"])
            seen.add(number)
        return found

    def _datasets(self, root):
        """The datasets behind an iterator; where nothing tells, all that were made before it."""
        run = self._pair.runs[root.side]
        found = [one for one in self._upstream(root) if "Dataset" in one["op"] or "SeedGenerator" in one["op"]]
        before = (run.definition(number) for number in run.ids() if number < root.definition["id"])
        return found or [one for one in before if "Dataset" in one["op"]]

    def _class(self, root):
        """(class, row of the matrix or None), by the first rule that knows it."""
        rules = (self._by_the_pair, self._by_level, self._by_reading, self._by_state, self._by_python, self._by_writes)
        for rule in rules:
            found = rule(root)
            if found is not None:
                return found
        forward = self._forward(root)
        one = root.definition
        source = self._book.source_of(one["op"], forward["op"] if forward else None)
        return advice.UNEXPLAINED, source or (None if advice.is_gpu(one["device"]) else advice.THREADS)

    def _by_the_pair(self, root):
        """The two runs did not do the same things, or in another order."""
        if root.kind == "structure":
            return advice.STRUCTURE, None
        if root.kind == "order":
            return advice.ORDER, None
        if root.kind == "open" or self._ran_in_another_order(root):
            return advice.OPEN, None
        return None

    def _by_level(self, root):
        """Weights, losses and layers tell that something differs, not what."""
        return (advice.UNKNOWN, None) if root.definition["kind"] in ("weight", "loss", "layer", "step") else None

    def _by_reading(self, root):
        """What the program reads: files, memory that nobody wrote, a pipeline."""
        one = root.definition
        if one["op"].startswith(_FILES):
            return advice.FILE, None
        if one["attrs"].get("unwritten"):
            return advice.MEMORY, None
        if one["kind"] != "input":
            return None
        return (advice.FILE, None) if self._is_read(root) else (advice.PIPELINE, self._pipeline_source(root))

    def _by_state(self, root):
        """Random numbers, and what was there before recording began."""
        one = root.definition
        if one["kind"] == "random":
            return advice.SEED, self._random_source(one)
        if one["kind"] == "state":
            return advice.SEED, self._book.source_of(one["op"])
        return (advice.SEED, None) if one["kind"] == "read" else None

    def _by_python(self, root):
        """A value that no op has made: a seed, what a file held, or any other."""
        one = root.definition
        if one["kind"] not in ("feed", "argument") and one["op"] not in _FEED_OPS:
            return None
        fed = self._seeds(root)
        if not fed:
            return advice.FILE if self._is_read(root) else advice.FEED, None
        by_keras = one["attrs"].get("by") == "keras"
        return advice.SEED, "keras3-initializers" if by_keras else self._random_source(fed)

    def _by_writes(self, root):
        """Writes into one variable in no order, or a read beside them."""
        one, run = root.definition, self._pair.runs[root.side]
        if one["kind"] == "write" and one["op"].startswith("Assign"):
            return advice.ORDER, "tf1-unordered-assign" if one["op"] in _RACES_OF_WRITES else None
        return (advice.OPEN, None) if gets_one_of(one, run, written_in_any_order(run)) else None

    def _is_read(self, root):
        """Does this value come from a file?"""
        return root.definition["op"] == "torch.load" or self._files.source(root) is not None

    def _ran_in_another_order(self, root):
        """At the level "open" only that is recorded, and only where all else agrees."""
        return self._pair.runs[root.side].header.get("level") == "open" and bool(root.definition["attrs"].get("open"))

    def _seeds(self, root):
        """The random op whose seed this value from Python is, if it is one.

        A few casts may lie between, a variable that keeps the seed, a function that gets it.
        """
        wave, seen = [root.definition], set()
        for _ in range(_HOPS):
            fed = [one for up in wave for one in self._flow(root.side).of(up) if one["id"] not in seen]
            random = [one for one in fed if _is_random(one)]
            if random:
                return random[0]
            seen.update(one["id"] for one in fed)
            wave = [one for one in fed if one["kind"] in ("call", "write") or one["op"] in _SEED_ARITHMETIC
                    or one["kind"] in ("argument", "read") and self._pair.ever_differs(one["id"], root.side)]
        return None

    def _flow(self, side):
        if side not in self._flows:
            self._flows[side] = Flow(self._pair.runs[side])
        return self._flows[side]

    def _used_by(self, root):
        """The types of the ops that get a value from Python: [] for any other."""
        if root.definition["kind"] not in ("feed", "argument"):
            return []
        run = self._pair.runs[root.side]
        fed = [run.definition(number) for number in run.ids()]
        used = {one["op"] for one in fed if root.definition["id"] in one["inputs"]}
        return sorted(used - {root.definition["op"]})[:4]

    def _pipeline_source(self, root):
        upstream = self._datasets(root)
        ops = [one["op"] for one in upstream]
        if any(one["attrs"].get("draws") for one in upstream):
            return "random-op-without-seed"
        if root.definition["op"].startswith("Queue"):
            return None
        if any(one["attrs"].get("deterministic") is False for one in upstream):
            return "tf-data-unordered"
        if not ops or any(op.startswith(_PARALLEL) for op in ops):
            return "tf-data-parallel-map"
        return "random-op-without-seed" if any("Shuffle" in op for op in ops) else None

    def _random_source(self, one):
        if one["op"] == "NonDeterministicInts":
            return "generator-without-seed"
        if one["op"].startswith(("Stateful", "Rng")):
            return "stateful-random-ops"
        return "random-op-without-seed"

    def _why(self, root, kind):
        one = root.definition
        if root.kind == "structure":
            return self._why_structure(root)
        if root.kind == "order":
            return "the same values come in another order"
        if root.kind == "open" or self._ran_in_another_order(root):
            return one["attrs"]["open"]
        if root.kind == "unexplained":
            return UNEXPLAINED
        if root.definition["kind"] == "read":
            return BEFORE
        if one["attrs"].get("unwritten"):
            return "it is read, and nobody has written all of it"
        if root.definition["kind"] == "write":
            return "what it writes differs, what goes in agrees"
        if kind == advice.UNKNOWN:
            return "the first that differs"
        if kind in (advice.FILE, advice.FEED, advice.PIPELINE) and not one["op"].startswith(_FILES):
            return self._why_fed(root, kind)
        return _DIFFERS

    def _why_fed(self, root, kind):
        """Of a value that no op has made: what is known of where it comes from."""
        files = self._files
        read = files.source(root) or (files.before(root) or [None])[-1]
        name = read and files.words(read, root.side)
        own = ", which the run itself had written before" if read and read.own else ""
        if kind == advice.FILE:
            return "what was read from {} differs{}".format(name or "a file", own)
        said = "a value that comes from Python differs" if root.definition["kind"] == "feed" and (
            root.definition["op"] == "Python" or not root.definition["inputs"]) else _DIFFERS
        return said + (", and so does what was read before from {}{}".format(name, own) if name else "")

    def _why_structure(self, root):
        if self._alone(root):
            return "only run {} has it".format("AB"[root.side])
        return "other inputs feed it" if in_graph(root.definition) else \
            "run {} does it here, the other goes on without".format("AB"[root.side])

    def _alone(self, root):
        return min(int(self._pair.ids[side][root.group]) for side in (0, 1)) < 0


def _is_random(one):
    return one["kind"] == "random" or "Random" in one["op"] or one["op"].startswith(_DRAWS)
