"""Compare traces, name the culprit: ``python -m tfdeterminism.trace diff A B [C...] [--json]``.

Exit codes: 0 the same, 1 diverged, 2 the structure differs, 3 bad input.
"""

import json
import os
import sys

import numpy

from .. import usage
from . import format as trace_format
from . import text
from .align import Pair, Run
from .describe import Describer
from .verdict import Verdict

SAME, DIVERGED, STRUCTURE = 0, 1, 2
CODES = {"same": SAME, "diverged": DIVERGED, "structure": STRUCTURE}
_FRONT = 240  # records around the first difference that are shown
_STEPS = 400  # bars of the picture


class Difference(object):
    """What two traces say. result, first_step, culprits (list of dicts, the root first), notes (lines);
    differing, missing, compared: numbers of records; steps, front: for the picture."""

    def __init__(self, left, right, rank="0"):
        runs = [Run(path) for path in (left, right)]
        _check(runs)
        for run in runs:
            if not run.count:
                raise trace_format.BadTrace("{} has no records".format(run.path), _why_empty(run))
        self.rank = rank
        self.headers = [run.header for run in runs]
        self.steps_recorded = runs[0].header.get("steps")
        self.notes = _notes(runs)
        self.weights = [run.end.get("weights") if run.end else None for run in runs]
        pair = Pair(*runs)
        verdict = Verdict(pair)
        describer = Describer(pair)
        self.result = verdict.result
        self.first_step = verdict.first_step
        self.compared = len(pair)
        self.differing, self.missing, self.reordered = verdict.differing, verdict.missing, verdict.reordered
        if verdict.strings:
            self.notes.append("{} strings differ, and no number that comes from them: names of files, handles".format(
                text.count(verdict.strings)))
            self.differing -= verdict.strings
        self.culprits = [dict(describer.culprit(root), rank=rank, key=_key_of(root)) for root in verdict.roots]
        for culprit in self.culprits:
            culprit["snippet"] = snippet(culprit["file"], culprit["line"])
        self.steps = _binned(verdict.steps())
        self.front = _front(verdict, self.culprits)

    def as_json(self):
        return {"result": self.result, "first_step": self.first_step, "culprits": self.culprits, "rank": self.rank,
                "compared": self.compared, "differing": self.differing, "missing": self.missing,
                "reordered": self.reordered, "notes": self.notes, "steps": self.steps, "front": self.front,
                "weights": self.weights, "traces": [_about(header) for header in self.headers]}


def compare(folders):
    """The Difference of two or more traces (files or folders with one for each process).

    The first is compared with each other; what differs earliest speaks for all. Raises BadTrace.
    """
    ranks = [trace_format.trace_files(folder) for folder in folders]
    for folder, found in zip(folders, ranks):
        lacking = sorted(set(ranks[0]) ^ set(found))
        if lacking:
            raise trace_format.BadTrace(
                "{} and {} do not have the same processes: {}".format(folders[0], folder, ", ".join(lacking)),
                "compare runs of as many processes")
    found = [(Difference(ranks[0][rank], other[rank], rank), folder)
             for other, folder in zip(ranks[1:], folders[1:]) for rank in sorted(ranks[0])]
    found.sort(key=lambda one: (not CODES[one[0].result], one[0].first_step or 0))
    first = found[0][0]
    if len(found) > 1:
        differ = sum(one.result != "same" for one, _ in found)
        first.notes.append("{} of {} comparisons differ".format(differ, len(found)))
    return first


def main(arguments=None, out=None):
    """The command; gives the exit code."""
    out = out or sys.stdout
    options = usage.diff(arguments)
    if len(options.trace) < 2:
        return usage.complain("one trace cannot be compared", "name two or more: diff A B [C...]")
    try:
        found = compare(options.trace)
    except trace_format.BadTrace as error:
        return usage.complain(error.cause, error.advice)
    except MemoryError:
        return usage.complain("not enough memory for these traces", "record fewer steps: run --steps 0:20")
    out.write((json.dumps(found.as_json(), indent=1) if options.json else text.of_difference(found)) + "\n")
    return CODES[found.result]


def snippet(path, number, around=2):
    """[[number, text], ...] of the user's program about a line, if it is still there: Python files only."""
    if not path or not path.endswith(".py"):
        return []
    try:
        with open(path, "rb") as source:
            lines = source.read(1 << 22).decode("utf-8", "replace").splitlines()
    except (IOError, OSError):
        return []
    first, end = max(number - around, 1), min(number + around, len(lines))
    return [[at, lines[at - 1].rstrip()[:160]] for at in range(first, end + 1)] if number <= len(lines) else []


def _key_of(root):
    """What `run --capture` needs to know the record again."""
    one = root.definition
    return {"function": one["function"], "trace": one["trace"], "node": one["node"], "output": one["output"]}


def _check(runs):
    """BadTrace where the two cannot be compared."""
    left, right = (run.header for run in runs)
    program = [os.path.basename((header.get("argv") or [""])[0]) for header in (left, right)]
    for what, values, advice in (
            ("programs", program, "trace the same program twice"),
            ("TensorFlow versions", [h.get("tensorflow") for h in (left, right)], "other versions round differently"),
            ("devices", [h.get("devices") for h in (left, right)], "other devices round differently: use the same"),
            ("levels", [h.get("level") for h in (left, right)], "record both with the same --level"),
            ("steps", [h.get("steps") for h in (left, right)], "record both with the same --steps")):
        if values[0] != values[1]:
            raise trace_format.BadTrace("these are traces of different {}: {} and {}".format(
                what, _short(values[0]), _short(values[1])), advice)


def _short(value):
    return value if isinstance(value, str) else json.dumps(value)


def _why_empty(run):
    if not run.end:
        return "the program was killed before the first one"
    return run.end.get("error") or "the program ran no op that was probed; is it a TensorFlow program?"


def _notes(runs):
    notes = []
    for name, run in zip("AB", runs):
        if run.damage:
            notes.append("{} ({}) is {}; it was read up to there".format(name, run.path, run.damage))
        elif not run.end:
            notes.append("{} ({}) has no end: the program was killed; it was read up to there".format(name, run.path))
        elif run.end.get("error"):
            notes.append("{}: {}".format(name, run.end["error"]))
        notes += ["{}: {}".format(name, note.get("text", "")) for note in run.notes]
    left, right = (run.header for run in runs)
    if left.get("argv", [])[1:] != right.get("argv", [])[1:]:
        notes.append("the arguments of the programs differ")
    if left.get("environment") != right.get("environment"):
        notes.append("determinism-related environment variables differ")
    if runs[0].header.get("python") != runs[1].header.get("python"):
        notes.append("the Python versions differ")
    return _merged(notes)


def _merged(notes):
    """Notes that both runs have once: a line less to read."""
    plain = [note[3:] for note in notes if note.startswith("A: ")]
    both = [note for note in plain if "B: " + note in notes]
    rest = [note for note in notes if note[3:] not in both]
    return list(dict.fromkeys(both)) + list(dict.fromkeys(rest))


def _about(header):
    return {name: header.get(name) for name in ("argv", "tensorflow", "python", "level", "steps", "devices", "xla")}


def _binned(steps):
    """At most _STEPS of [first step, records, differing]: neighbours taken together."""
    width = -(-len(steps) // _STEPS) or 1
    return [[int(steps[at][0])] + [int(sum(one[column] for one in steps[at:at + width])) for column in (1, 2)]
            for at in range(0, len(steps), width)]


def _front(verdict, culprits):
    """Records of the first differing step around the root, in the order of the run that has them."""
    if verdict.first_step is None:
        return []
    slots = verdict.front(verdict.first_step)
    root = verdict.roots[0]
    at = numpy.flatnonzero(slots == root.slot) if root.slot is not None else []
    start = max(0, int(at[0]) - _FRONT // 4) if len(at) else 0
    shown = []
    for slot in slots[start:start + _FRONT].tolist():
        group = int(verdict.pair.groups_of(slot))
        _, one = verdict.pair.definition(group)
        shown.append({"op": one["op"], "name": one["node"], "output": one["output"], "kind": one["kind"],
                      "state": "culprit" if slot in [r.slot for r in verdict.roots] else verdict.state(slot),
                      "file": one["file"], "line": one["line"], "function": one["function"]})
    return shown
