"""The search for a culprit: what is run and compared, and what is concluded."""

import json
import os

from . import advice, describe, diff
from .format import BadTrace, trace_files
from .launch import Failed, Launcher, NothingRecorded, replay
from .progress import Progress
from .reader import Reader

REPLAYS = 30


class Located(object):
    """What was found. result: "same", "diverged", "structure"; difference: of the closest look, or None;
    replay: what `trace replay` said, or None; findings: lines, in the order in which they were found."""

    def __init__(self):
        self.result = "same"
        self.difference = None
        self.replay = None
        self.runs = 0
        self.findings = []
        self.culprits = []

    @property
    def code(self):
        return diff.CODES[self.result]

    def as_json(self):
        shown = self.difference.as_json() if self.difference else {"first_step": None, "notes": []}
        return dict(shown, result=self.result, culprits=self.culprits, runs=self.runs, replay=self.replay,
                    findings=self.findings, verdict=self.verdict())

    def verdict(self):
        """One sentence."""
        if self.result == "same":
            return "No difference in {} runs.".format(self.runs)
        if not self.culprits:
            return "The runs differ, but no recorded op does."
        first = self.culprits[0]
        said = "{} at step {}: {}".format(first["op_type"], first["step"], first["class"])
        if first["forward_op"]:
            said += " in the gradient of {}".format(first["forward_op"])
        return said + (" ({}:{}).".format(first["file"], first["line"]) if first["file"] else ".")


class Search(object):
    """One search. program: argv of the user's program; folder: where traces go; runs: at most so many
    at each level while none differ; steps: (first, end) or None, to look at no others."""

    def __init__(self, program, folder, runs=5, steps=None, progress=None):
        self._folder, self._limit, self._steps = folder, runs, steps
        self._launcher = Launcher(program, folder)
        self._progress = progress or Progress(2 + 2 + 2 + 1 + 1)
        self._count = 0
        self._weights = []  # of each whole run: (level, hex digest)
        self.found = Located()

    def search(self):
        """The Located. Raises Failed, BadTrace."""
        try:
            weights = self._until_different("weights", self._steps)
        except NothingRecorded:  # no variables, no losses: only ops can tell
            weights = ops = self._until_different("ops", self._steps)
        else:
            ops = self._descend(weights) if weights else None
        if weights is None:
            self._compare_with_untraced()
            return self.found
        self.found.difference = ops or weights
        self.found.result = self.found.difference.result
        self.found.culprits = self.found.difference.culprits
        self._tell("ops", self.found.difference)
        if ops is not None and ops.culprits:
            self._confirm()
        self._compare_with_untraced()
        return self.found

    def _descend(self, weights):
        """From weights that differ to layers, to ops; the difference of ops, or None."""
        self._tell("weights", weights)
        step = weights.first_step or 0
        try:
            layers = self._until_different("layers", (0, step + 1))
        except NothingRecorded:
            layers = None  # a program without layers
        if layers is not None and layers.first_step is not None:
            self._tell("layers", layers)
            step = min(step, layers.first_step)
        return self._ops(step)

    def _ops(self, step):
        """The difference of ops at this step; from the first step on where that shows no cause."""
        found = None
        if step:
            try:
                found = self._until_different("ops", (step, step + 1))
            except (NothingRecorded, BadTrace):
                pass  # its ops belong to another step
        if found is None or not any(_is_cause(culprit) for culprit in found.culprits):
            found = self._until_different("ops", (0, step + 1)) or found
        return found

    def _until_different(self, level, steps):
        """The Difference of the first two runs that differ, None if `runs` runs are all the same."""
        first = self._run(level, steps)
        for number in range(1, self._limit):
            other = self._run(level, steps)
            found = diff.compare([first, other])
            if found.result != "same":
                return found
            if number > 1 or level == "weights":
                self._progress.planned += 1
        return None

    def _run(self, level, steps, more=(), environment=None):
        """Run the program once at a level; the folder with its traces."""
        self._count += 1
        self.found.runs += level != "none"
        folder = os.path.join(self._folder, "{:02d}-{}".format(self._count, level))
        options = ["--out", folder, "--level", level] + list(more)
        if steps is not None:
            options += ["--steps", "{}:{}".format(*steps)]
        what = "without probes" if level == "none" else "digests of {}".format(level)
        self._progress.begin("run {}, {}".format(self._count, what))
        self._launcher.record(self._count, options, environment)
        self._progress.end()
        self._remember(level, folder)
        return folder

    def _remember(self, level, folder):
        digests = []
        for path in sorted(trace_files(folder).values()):
            end = _end_of(path)
            digests.append((end or {}).get("weights"))
        if digests and all(digests):
            self._weights.append((level, " ".join(digests)))

    def _tell(self, level, difference):
        if difference.culprits:
            first = difference.culprits[0]
            self._found("{}: first difference at step {}: {} {}".format(
                level, first["step"], first["op_type"], first["op_name"]))

    def _found(self, line):
        self.found.findings.append(line)
        self._progress.say("  " + line)

    def _confirm(self):
        """Ask the culprit itself: by replay, or by a run without what is suspected."""
        first = self.found.culprits[0]
        if first["class"] == advice.FEED and not os.environ.get("PYTHONHASHSEED"):
            self._try_hash_seed(first)
        if first["class"] == advice.KERNEL:
            self._replay(first)

    def _try_hash_seed(self, culprit):
        """With PYTHONHASHSEED=0 sets have one order: does the difference go away?"""
        self._progress.planned += 2
        fixed = {"PYTHONHASHSEED": "0"}
        pair = [self._run("weights", self._steps, environment=fixed) for _ in range(2)]
        if diff.compare(pair).result != "same":
            self._found("with PYTHONHASHSEED=0 the runs still differ: it is not the order of a set")
            return
        self._found("with PYTHONHASHSEED=0 the runs are the same: the order of a set, or a hash, decides")
        book = advice.Book({"tensorflow": self.found.difference.headers[0].get("tensorflow"), "environment": {}})
        found = book.advise(advice.FEED, "python-set-order", culprit["device"])
        culprit.update(source=found.source, solution=found.solution, lines=found.lines,
                       advice="; ".join([found.text] + found.lines))

    def _replay(self, culprit):
        """Run the one op again and again on the inputs that it had."""
        op = dict(culprit["key"], occurrence=culprit["occurrence"])
        folder = self._run("ops", self.found.difference.steps_recorded, ["--capture", json.dumps(op)])
        kept = sorted(name for name in os.listdir(folder) if name.startswith("capture-"))
        if not kept:
            self._found("it could not be replayed: its inputs were not kept")
            return
        try:
            told = replay(os.path.join(folder, kept[0]), REPLAYS)
        except Failed as error:
            self._found("it could not be replayed: {}".format(error.cause))
            return
        self.found.replay = {"times": told["times"], "distinct": max(told["distinct"] or [1])}
        self._found("replayed {times} times on the same inputs: {distinct} different results".format(
            **self.found.replay))

    def _compare_with_untraced(self):
        """Did instrumenting change what is trained? Only a run that repeats itself can tell."""
        self._run("none", None)
        untraced = [digest for level, digest in self._weights if level == "none"]
        traced = {digest for level, digest in self._weights if level != "none"}
        if not untraced or not traced:
            self._found("final weights could not be compared with those of an untraced run")
        elif untraced[-1] in traced:
            self._found("final weights: bit-identical to those of an untraced run")
        elif len(traced) == 1:
            self._found("final weights differ from those of an untraced run: instrumenting changed the program")
        else:
            self._found("final weights differ from run to run, traced or not")


def _is_cause(culprit):
    """Not what began before the steps that were recorded: a variable that differs when they begin."""
    return culprit["why"] not in (describe.UNEXPLAINED, describe.BEFORE)


def _end_of(path):
    reader = Reader(path)
    try:
        return next((value for kind, value in reader if kind == "end"), None)
    finally:
        reader.close()
