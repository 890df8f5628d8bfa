"""What to do about a cause: the matrix' source and solution for this version and device.

advice.json is generated from the claims and the evidence of the matrix (`tfdet status --write`). What a framework's
users are told beside it comes from its backend.
"""

import io
import json
import os
import re
from collections import OrderedDict, namedtuple

from .. import backends
from ..faults import Fault

SCHEMA = 2
THREADS = "cpu-threads"  # the row of the matrix for what has none of its own
_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "advice.json")
_ALONE = ["# see what it reads that is not among its inputs: a state, a file, memory that others write meanwhile"]

# What a backend is asked for the row of: definition of the cause; forward: of the op whose gradient it is, or None;
# upstream: those of the pipeline that feeds it; seeded: of the op that draws with this seed, or None; row_of(op type,
# forward op type): the row of advice.json that has such an op.
Question = namedtuple("Question", "definition forward upstream seeded row_of")


class Advice(object):
    """source, solution: keys of the matrix or None. lines: of code. text: one sentence."""

    def __init__(self, source=None, solution=None, lines=(), text=""):
        self.source = source
        self.solution = solution
        self.lines = list(lines)
        self.summary = text


class AdviceTable(object):
    """advice.json for one environment. header: of a trace. It speaks of one framework alone: of the ops of others only
    the class of a fault is known."""

    def __init__(self, header, content=None):
        content = content or _content()
        self.sources, self.solutions = content["sources"], content["solutions"]  # in the matrix' order
        self._backend = backends.find_for_header(header)
        self._version = _numbers(header.get("version") or "")
        self._ngc = _numbers((header.get("environment") or {}).get("NVIDIA_TENSORFLOW_VERSION") or "")

    def source(self, fault, definition, forward, upstream, seeded):
        """The row of the matrix for a cause, or None: see Question."""
        if not self._backend.uses_matrix:
            return None
        return self._backend.matrix_source(fault, Question(definition, forward, upstream, seeded, self.row_of))

    def advise(self, fault, source, device, op=None):
        """fault: a Fault; source: key or None; device: as the framework names it; op: type of the op."""
        on_gpu = is_gpu(device)
        if not self._backend.uses_matrix:
            return Advice(lines=self._backend.advice_lines(fault, op, on_gpu))
        found = self.sources.get(source)
        if found is None:
            return Advice(lines=self._backend.advice_lines(fault, op, on_gpu), text="the matrix has no row for it")
        place = "gpu" if on_gpu else "cpu"
        key = self._solution(found, place)
        if key is not None:
            return Advice(source, key, self.solutions[key]["lines"], "{} ({})".format(self.solutions[key]["name"], key))
        lines = ["# instead: " + found["instead"]] if found["instead"] else \
            self._backend.advice_lines(fault, op, on_gpu)
        stops = sorted(self._claimed(found, place, "raises"))
        text = "no solution is known on a {} in this version".format(place.upper())
        if stops:
            text += "; {} makes the program stop there with an error".format(" or ".join(stops))
        return Advice(source, None, lines, text)

    def row_of(self, op, forward=None):
        """The row of an op type: the one that is named like it, else the one of which it is the first op."""
        named = [(_to_kebab_case(op) != key, one["ops"].index(op), place, key)
                 for place, (key, one) in enumerate(self.sources.items()) if op in one["ops"]]
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
    """device: as a framework names it."""
    return any(word in (device or "").upper() for word in ("GPU", "CUDA"))


def without_hashes(lines):
    """The advice where the order of hashes was seen to decide nothing."""
    return [line for line in lines if line != backends.SORT_HASHES]


def after_replay(cause, times, distinct):
    """What is known of an op that was run alone on the inputs that it had: only what differed then races by itself."""
    if distinct > 1:
        cause["class"] = Fault.KERNEL_RACE.value
        return
    cause["why"] += "; run alone on these {} times it gave one result".format(times)
    if cause["source"] in (None, THREADS):
        cause.update(source=None, solution=None, lines=_ALONE, advice=_ALONE[0])


def contains(text, version):
    """Does a range such as ">=2.8,<=2.10" hold the version (a tuple)? None holds none."""
    if not text or not version:
        return False
    tests = [re.match(r"\s*(>=|<=|==|!=|<|>)\s*([0-9.]+)", part) for part in text.split(",")]
    return all(test is not None and _compares(_compare(version, _numbers(test.group(2))), test.group(1))
               for test in tests)


def _compares(compared, sign):
    return {">=": compared >= 0, "<=": compared <= 0, "==": compared == 0, "!=": compared != 0, "<": compared < 0,
            ">": compared > 0}[sign]


def _compare(left, right):
    size = max(len(left), len(right))
    left, right = (one + (0,) * (size - len(one)) for one in (left, right))
    return (left > right) - (left < right)


def _numbers(text):
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def _to_kebab_case(op):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", op).lower()


def _content():
    with io.open(_FILE, encoding="utf-8") as source:
        content = json.load(source, object_pairs_hook=OrderedDict)  # Python 3.5 forgets the order
    if content.get("schema") != SCHEMA:
        raise ValueError("{}: schema {}, not {}".format(_FILE, content.get("schema"), SCHEMA))
    return content
