"""What to do about a culprit: the matrix' source and solution for this version and device.

advice.json is generated from the claims and the evidence of the matrix (`tfdet status --write`).
"""

import io
import json
import os
import re
from collections import OrderedDict

SCHEMA = 2
KERNEL, PIPELINE, SEED, FEED, STRUCTURE, ORDER, OPEN, FILE = (
    "kernel race", "input pipeline", "seed or state", "Python feed", "structure", "order only", "open order", "file")
UNEXPLAINED, MEMORY = "unexplained", "uninitialized memory"
UNKNOWN = "not known at this level"
THREADS = "cpu-threads"  # the row of the matrix for what has none of its own
_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "advice.json")
_HASHES = "for item in sorted(items):  # a set has another order in every process; or PYTHONHASHSEED=0 before Python"
_CLASS_LINES = {
    FEED: ["import random, numpy",
           "random.seed(1); numpy.random.seed(1)  # and numpy.random.default_rng(1) instead of default_rng()",
           _HASHES],
    SEED: ["tf.random.set_seed(1)  # TensorFlow 1: tf.set_random_seed(1) in each graph"],
    PIPELINE: ["dataset = dataset.map(function)  # no num_parallel_calls where the function draws random numbers",
               "dataset = dataset.shuffle(size, seed=1)",
               "generator = numpy.random.default_rng(1)  # in what from_generator or numpy_function draws from"],
    STRUCTURE: ["# find what decides here, for example a branch on the time, a set's order, a file or a random number"],
    OPEN: ["# give it an order: parallel_iterations=1 for a loop, tf.control_dependencies for two updates,",
           "# a lock or one thread in Python, what a pool gives in the order of its tasks (pool.map, say);",
           "# or draw by tf.random.stateless_* with a seed of each turn's own"],
    FILE: ["# begin each run from the same file: what was read differs"],
    ORDER: ["for item in sorted(items):  # go through it in an order that does not change"],
    MEMORY: ["# write all of it before it is read: zeros instead of empty"],
}
_ALONE = ["# see what it reads that is not among its inputs: a state, a file, memory that others write meanwhile"]

_TORCH_LINES = {
    FEED: _CLASS_LINES[FEED],
    SEED: ["torch.manual_seed(1)  # before the model is made; generators of your own: generator.manual_seed(1)"],
    PIPELINE: ["loader = DataLoader(dataset, shuffle=True, generator=torch.Generator().manual_seed(1),",
               "                    worker_init_fn=seed_worker)  # which seeds random and numpy in each worker"],
    UNEXPLAINED: ["torch.use_deterministic_algorithms(True)  # an op that has no deterministic form raises then"],
    STRUCTURE: _CLASS_LINES[STRUCTURE],
    OPEN: ["# give it an order: a lock, one thread, a generator of each turn's own, what a pool gives in the order of",
           "# its tasks (pool.map, a list of futures)"],
    FILE: _CLASS_LINES[FILE],
    ORDER: _CLASS_LINES[ORDER],
    MEMORY: ["torch.zeros(size)  # instead of torch.empty, or write all of it before it is read"],
}
_CUDA_LINES = ["import os", "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'  # before CUDA starts"]

_OP_LINES = {
    "Timestamp": ["# no seed helps: train on no value of the clock, or pass one in that is the same in each run"],
    "UniqueId": ["# no seed helps: name it yourself"],
}


class Advice(object):
    """source, solution: keys of the matrix or None. lines: of code. text: one sentence."""

    def __init__(self, source=None, solution=None, lines=(), text=""):
        self.source = source
        self.solution = solution
        self.lines = list(lines)
        self.text = text


class Book(object):
    """advice.json for one environment. header: of a trace (tensorflow or torch, environment). It speaks of TensorFlow
    alone: of PyTorch's ops only their class is known."""

    def __init__(self, header, content=None):
        content = content or _content()
        self.sources, self.solutions = content["sources"], content["solutions"]  # in the matrix' order
        self._torch = bool(header.get("torch"))
        self._version = _numbers(header.get("tensorflow") or "")
        self._ngc = _numbers((header.get("environment") or {}).get("NVIDIA_TENSORFLOW_VERSION") or "")

    def advise(self, kind, source, device, op=None):
        """kind: class of the culprit; source: key or None; device: as TensorFlow names it; op: its type."""
        on_gpu = is_gpu(device)
        if self._torch:
            more = _CUDA_LINES if kind == UNEXPLAINED and on_gpu else []
            return Advice(None, None, more + lines_of(kind, torch=True))
        found = self.sources.get(source)
        if found is None:
            lines = _lines(kind, op)
            return Advice(None, None, lines, "the matrix has no row for it")
        place = "gpu" if on_gpu else "cpu"
        key = self._solution(found, place)
        if key is not None:
            return Advice(source, key, self.solutions[key]["lines"], "{} ({})".format(self.solutions[key]["name"], key))
        lines = ["# instead: " + found["instead"]] if found["instead"] else _lines(kind, op)
        stops = sorted(self._claimed(found, place, "raises"))
        text = "no solution is known on a {} in this version".format(place.upper())
        if stops:
            text += "; {} makes the program stop there with an error".format(" or ".join(stops))
        return Advice(source, None, lines, text)

    def source_of(self, op, forward=None):
        """The row of an op type: the one that is named like it, else the one of which it is the first op."""
        named = [(_kebab(op) != key, one["ops"].index(op), place, key)
                 for place, (key, one) in enumerate(self.sources.items()) if op in one["ops"]]
        if op == "UnsortedSegmentSum" and (forward or "").startswith(("Gather", "ResourceGather")):
            return "gather-backprop"
        return min(named)[3] if named else None

    def _solution(self, source, place):
        """The documented or measured solution; of several what covers the most ops, TensorFlow's own, the newest."""
        found = self._claimed(source, place, "deterministic")
        version = ".".join(str(part) for part in self._version[:2])
        if not self._ngc:
            found |= {key for key, versions in source["measured"].get(place, {}).items() if version in versions}
        known = [(one["general"], not one["own"], place, key)
                 for place, (key, one) in enumerate(self.solutions.items()) if key in found]
        special = [one for one in known if not one[0] and one[-1] not in ("CPU1", "KSEED")]
        return max(special or known)[-1] if known else None

    def _claimed(self, source, place, says):
        return {key for claim in source["claims"] for key in claim["solutions"]
                if claim["says"] == says and claim["device"] == place and self._covers(claim)}

    def _covers(self, claim):
        if self._ngc:
            inside = contains(claim.get("ngc"), self._ngc)
        else:
            inside = contains(claim.get("stock"), self._version[:2])
        return inside and ("framework_version" not in claim or contains(claim["framework_version"], self._version[:2]))


def is_gpu(device):
    """device: as TensorFlow or PyTorch names it."""
    return any(word in (device or "").upper() for word in ("GPU", "CUDA"))


def without_hashes(lines):
    """The advice where the order of hashes was seen to decide nothing."""
    return [line for line in lines if line != _HASHES]


def seeds_help(lines):
    """Is it advised to seed what Python, NumPy or the framework draws?"""
    return bool({_CLASS_LINES[FEED][1], _CLASS_LINES[SEED][0], _TORCH_LINES[SEED][0]} & set(lines))


def after_replay(culprit, times, distinct):
    """What is known of an op that was run alone on the inputs that it had: only what differed then races by itself."""
    if distinct > 1:
        culprit["class"] = KERNEL
        return
    culprit["why"] += "; run alone on these {} times it gave one result".format(times)
    if culprit["source"] in (None, THREADS):
        culprit.update(source=None, solution=None, lines=_ALONE, advice=_ALONE[0])


def lines_of(kind, torch=False):
    """What is advised of a class where nothing is known of the op."""
    return (_TORCH_LINES if torch else _CLASS_LINES).get(kind, [])


def _lines(kind, op):
    return _OP_LINES.get(op) or lines_of(kind)


def contains(text, version):
    """Does a range such as ">=2.8,<=2.10" hold the version (a tuple)? None holds none."""
    if not text or not version:
        return False
    tests = [re.match(r"\s*(>=|<=|==|!=|<|>)\s*([0-9.]+)", part) for part in text.split(",")]
    return all(test is not None and _holds(_compare(version, _numbers(test.group(2))), test.group(1)) for test in tests)


def _holds(compared, sign):
    return {">=": compared >= 0, "<=": compared <= 0, "==": compared == 0, "!=": compared != 0, "<": compared < 0,
            ">": compared > 0}[sign]


def _compare(left, right):
    size = max(len(left), len(right))
    left, right = (one + (0,) * (size - len(one)) for one in (left, right))
    return (left > right) - (left < right)


def _numbers(text):
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def _kebab(op):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", op).lower()


def _content():
    with io.open(_FILE, encoding="utf-8") as source:
        content = json.load(source, object_pairs_hook=OrderedDict)  # Python 3.5 forgets the order
    if content.get("schema") != SCHEMA:
        raise ValueError("{}: schema {}, not {}".format(_FILE, content.get("schema"), SCHEMA))
    return content
