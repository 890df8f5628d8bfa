"""Advice about a cause: the matrix' source and solution for this framework version and device.

The matrix is the data in `matrix/`; a source in it is a known source of nondeterminism. advice.json is generated from
its claims and evidence (`tfdet status --write`). The backend of a framework adds advice of its own.
"""

import io
import json
import os
import re
from collections import OrderedDict, namedtuple

from .. import backends
from ..faults import Fault

SCHEMA = 2
THREADS = "cpu-threads"  # the matrix' source for CPU ops that have no source of their own
_FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "advice.json")
_FOR_WHOLE_PROGRAMS = ("CPU1", "KSEED")  # one thread; the seeds by Keras: a solution for one op comes before these
_ALONE = ["# see what it reads that is not among its inputs: a state, a file, memory that others write meanwhile"]

# The arguments of a backend's matrix_source(). definition: of the cause; forward: of the op whose gradient it is, or
# None; upstream: definitions of the pipeline that feeds it; seeded: of the op that draws with this seed, or None;
# row_of(op type): the key of the source in advice.json that has such an op.
Question = namedtuple("Question", "definition forward upstream seeded row_of")


class Advice(object):
    """The advice about one cause.

    source, solution: keys of the matrix or None; lines: of code; summary: one sentence.
    """

    def __init__(self, source=None, solution=None, lines=(), summary=""):
        self.source = source
        self.solution = solution
        self.lines = list(lines)
        self.summary = summary


class AdviceTable(object):
    """The advice of advice.json for one environment. header: of a trace.

    advice.json covers one framework. For ops of other frameworks the advice follows from the class of the fault alone.
    """

    def __init__(self, header, content=None):
        content = content or _content()
        self.sources, self.solutions = content["sources"], content["solutions"]  # in the matrix' order
        self._backend = backends.find_for_header(header)
        self._version = _numbers(header.get("version") or "")
        self._ngc = _numbers((header.get("environment") or {}).get("NVIDIA_TENSORFLOW_VERSION") or "")

    def source(self, fault, definition, forward, upstream, seeded):
        """Return the key of the matrix' source for a cause, or None. The arguments are those of Question."""
        if not self._backend.uses_matrix:
            return None
        return self._backend.matrix_source(fault, Question(definition, forward, upstream, seeded, self.row_of))

    def advise(self, fault, source, device, op=None):
        """Return the Advice. fault: a Fault; source: key or None; device: the framework's name; op: type of the op."""
        on_gpu = is_gpu(device)
        if not self._backend.uses_matrix:
            return Advice(lines=self._backend.advice_lines(fault, op, on_gpu))
        row = self.sources.get(source)
        if row is None:
            return Advice(lines=self._backend.advice_lines(fault, op, on_gpu), summary="the matrix has no row for it")
        device_kind = "gpu" if on_gpu else "cpu"
        key = self._solution(row, device_kind)
        if key is not None:
            return Advice(source, key, self.solutions[key]["lines"], "{} ({})".format(self.solutions[key]["name"], key))
        lines = ["# instead: " + row["instead"]] if row["instead"] else \
            self._backend.advice_lines(fault, op, on_gpu)
        stopping = sorted(self._claimed(row, device_kind, "raises"))
        text = "no solution is known on a {} in this version".format(device_kind.upper())
        if stopping:
            text += "; {} makes the program stop there with an error".format(" or ".join(stopping))
        return Advice(source, None, lines, text)

    def row_of(self, op):
        """Return the key of the source for an op type: the source named after it, else the one that lists it first."""
        candidates = [(_to_kebab_case(op) != key, row["ops"].index(op), index, key)
                      for index, (key, row) in enumerate(self.sources.items()) if op in row["ops"]]
        return min(candidates)[3] if candidates else None

    def _solution(self, source, device_kind):
        """Return the key of the documented or measured solution, or None.

        Of several, one that does not apply to all ops (`general`) comes first, then one that is not a patch of
        this project (`own`), then the one that is last in the matrix.
        """
        keys = self._claimed(source, device_kind, "deterministic")
        version = ".".join(str(number) for number in self._version[:2])
        if not self._ngc:
            keys |= {key for key, versions in source["measured"].get(device_kind, {}).items() if version in versions}
        candidates = [(solution["general"], not solution["own"], index, key)
                      for index, (key, solution) in enumerate(self.solutions.items()) if key in keys]
        special = [candidate for candidate in candidates
                   if not candidate[0] and candidate[-1] not in _FOR_WHOLE_PROGRAMS]
        return max(special or candidates)[-1] if candidates else None

    def _claimed(self, source, device_kind, says):
        return {key for claim in source["claims"] for key in claim["solutions"]
                if claim["says"] == says and claim["device"] == device_kind and self._covers(claim)}

    def _covers(self, claim):
        """Return whether a claim holds for this version, of NVIDIA's build (`ngc`) or of the framework's (`stock`)."""
        if self._ngc:
            is_covered = contains(claim.get("ngc"), self._ngc)
        else:
            is_covered = contains(claim.get("stock"), self._version[:2])
        return is_covered and (
            "framework_version" not in claim or contains(claim["framework_version"], self._version[:2]))


def is_gpu(device):
    """Return whether a device is a GPU. device: the framework's name for it."""
    return any(name in (device or "").upper() for name in ("GPU", "CUDA"))


def without_hashes(lines):
    """Return the advice without the line about hash order, for a program that hash order does not affect."""
    return [line for line in lines if line != backends.SORT_HASHES]


def after_replay(cause, times, distinct):
    """Update a cause after its op was run alone on its recorded inputs: only a kernel race differs then.

    cause: a dict that describe.Describer returns; distinct: how many different results `times` runs gave.
    """
    if distinct > 1:
        cause["class"] = Fault.KERNEL_RACE.value
        return
    cause["why"] += "; run alone on these {} times it gave one result".format(times)
    if cause["source"] in (None, THREADS):
        cause.update(source=None, solution=None, lines=_ALONE, advice=_ALONE[0])


def contains(text, version):
    """Return whether a range such as ">=2.8,<=2.10" contains a version (a tuple). An empty range contains none."""
    if not text or not version:
        return False
    tests = [re.match(r"\s*(>=|<=|==|!=|<|>)\s*([0-9.]+)", comparison) for comparison in text.split(",")]
    return all(test is not None and _compares(_compare(version, _numbers(test.group(2))), test.group(1))
               for test in tests)


def _compares(compared, sign):
    return {">=": compared >= 0, "<=": compared <= 0, "==": compared == 0, "!=": compared != 0, "<": compared < 0,
            ">": compared > 0}[sign]


def _compare(left, right):
    size = max(len(left), len(right))
    left, right = (version + (0,) * (size - len(version)) for version in (left, right))
    return (left > right) - (left < right)


def _numbers(text):
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in match.group().split(".")) if match else ()


def _to_kebab_case(op):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", op).lower()


def _content():
    with io.open(_FILE, encoding="utf-8") as source:
        content = json.load(source, object_pairs_hook=OrderedDict)  # Python 3.5 forgets the order
    if content.get("schema") != SCHEMA:
        raise ValueError("{}: schema {}, not {}".format(_FILE, content.get("schema"), SCHEMA))
    return content
