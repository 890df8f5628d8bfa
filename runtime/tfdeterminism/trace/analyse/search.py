"""The search for a culprit: what is run and compared, and what is concluded."""

import json
import os

from . import advice, describe, diff, text
from .format import BadTrace, trace_files
from .launch import Failed, Launcher, NothingRecorded
from .progress import Progress
from .reader import Reader
from .schedules import Schedules

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
        self.hidden = False  # does the program differ, and what is recorded of it not?

    @property
    def code(self):
        return diff.CODES[self.result]

    def as_json(self):
        shown = self.difference.as_json() if self.difference else {"first_step": None, "notes": []}
        return dict(shown, result=self.result, culprits=self.culprits, runs=self.runs, replay=self.replay,
                    findings=self.findings, verdict=self.verdict(), hidden=self.hidden)

    def verdict(self):
        """One sentence."""
        if self.result == "same":
            return "No difference in {} runs.".format(self.runs)
        if self.hidden:
            return self._hidden_verdict()
        reach = self.difference and self.difference.reach
        if reach and not self.culprits:
            return "One run goes farther than the other: {}.".format(reach)
        if not self.culprits:
            return "The runs differ, but no recorded op does."
        first = self.culprits[0]
        said = "{} at step {}: {}".format(first["op_type"], first["step"], first["class"])
        if first["forward_op"]:
            said += " in the gradient of {}".format(first["forward_op"])
        if first["rank"] != "0":
            said += " in process {}".format(first["rank"])
        return said + _at_line(first) + "."

    def _hidden_verdict(self):
        said = "Your program differs, my probes hide it"
        if not self.culprits:
            return said + "; the recorded graphs leave no order open."
        first = self.culprits[0]
        return "{}. What may run in any order: {}{}{}.".format(
            said, first["op_type"], _at_line(first), ", and others" if self.culprits[1:] else "")


class Search(object):
    """One search. program: argv of the user's program; folder: where traces go; runs: at most so many
    at each level while none differ; steps: (first, end) or None, to look at no others; schedules: a
    schedules.Schedules, by which runs are told apart."""

    def __init__(self, program, folder, runs=5, steps=None, progress=None, launcher=None, schedules=None):
        self._folder, self._limit, self._steps = folder, runs, steps
        self._launcher = launcher or Launcher(program, folder)
        self._schedules = schedules or Schedules()
        self._turn = 0      # which of the runs that are compared with each other it is
        self._progress = progress or Progress(1 + 2 + 2 + 2 + 1 + 1)
        self._count = 0
        self._weights = []  # of each whole run: (level, hex digest)
        self._ops = []      # folders of the runs at level ops
        self.found = Located()

    def search(self):
        """The Located. Raises Failed, BadTrace."""
        self._untraced(0)
        closest = self._look()
        self._untraced(1)
        if closest is None and not self._untraced_differ():
            self._untraced(2)  # a race strikes some runs only
        if closest is None and self._untraced_differ():
            closest = self._among_ops(self._steps)
        if closest is not None:
            self._conclude(closest)
        if self._untraced_differ() if closest is None else _is_coarse(closest):
            self._hidden(closest)
        self._compare_with_untraced()
        return self.found

    def _untraced(self, turn):
        self._turn = turn
        self._run("none", None)

    def _conclude(self, closest):
        self.found.difference, self.found.result, self.found.culprits = closest, closest.result, closest.culprits
        if not _is_coarse(closest):
            self._tell(closest.headers[0]["level"], closest)
            if closest.culprits:
                self._confirm(closest)

    def _hidden(self, closest):
        """The program differs from run to run, and every op that was recorded agrees: who could have hidden it?"""
        if len(self._ops) < 2:
            self._among_ops(self._steps)
        seen = self._where_order_is_open()
        if seen is not None and seen.culprits:
            self._found("runs with probes at every op agree, as those give an order to what has none")
            self._conclude(seen)
            return
        step = closest.first_step if closest is not None else None
        self.found.hidden, self.found.result = True, "diverged"
        self.found.culprits = diff.suspects(self._ops[-2:], step or 0)
        self._found("runs differ, and all runs with probes at every op agree: they change the timing, or an order")

    def _where_order_is_open(self):
        """The Difference of the ops alone whose order the graphs leave open; they run as they do without us."""
        try:
            return self._until_different("open", self._steps)
        except (NothingRecorded, BadTrace):
            return None  # there are none

    def _untraced_differ(self):
        return len(self._digests("none")) > 1

    def _digests(self, *levels):
        return {digest for level, digest in self._weights if level in levels}

    def _look(self):
        """The Difference that looks closest, None while all runs are the same."""
        try:
            weights = self._until_different("weights", self._steps)
        except (NothingRecorded, diff.NoRecords):  # no training steps: only ops can tell
            return self._among_ops(self._steps)
        if weights is None and not self._digests("none"):  # no weights: a loss alone tells little
            return self._among_ops(self._steps)
        if weights is None or weights.reach and not weights.culprits:
            return weights
        return self._descend(weights) or weights

    def _descend(self, weights):
        """From weights that differ to layers, to ops; the difference of ops, or None."""
        self._tell("weights", weights)
        step = weights.first_step
        if step is None:
            return self._among_ops(self._steps)
        try:
            layers = self._until_different("layers", (0, step + 1))
        except (NothingRecorded, diff.NoRecords):
            layers = None  # a program without layers
        if layers is not None and layers.first_step is not None:
            self._tell("layers", layers)
            step = min(step, layers.first_step)
        return self._at(step)

    def _at(self, step):
        """The difference of ops at this step; from the first step on where that shows no cause."""
        found = None
        if step:
            try:
                found = self._among_ops((step, step + 1))
            except (NothingRecorded, BadTrace):
                pass  # its ops belong to another step
        if found is None or not any(_is_cause(culprit) for culprit in found.culprits):
            found = self._among_ops((0, step + 1)) or found
        return found

    def _among_ops(self, steps):
        return self._until_different("ops", steps)

    def _until_different(self, level, steps):
        """The Difference of the first two runs that differ in a record, else in their final weights; None if all are
        the same."""
        self._turn = 0
        runs, unseen = [self._run(level, steps)], None
        for number in range(1, self._limit):
            self._turn = number
            runs.append(self._run(level, steps))
            found = diff.compare([runs[0], runs[-1]])
            if found.culprits or found.reach or found.first_step is not None:
                return found if found.culprits or len(runs) < 3 else diff.compare(runs)
            unseen = unseen or (found if found.result != "same" else None)
            if number > 1 or level == "weights":
                self._progress.planned += 1
        return unseen

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
        self._launcher.record(self._count, options, self._schedules.environment(self._turn, environment))
        self._progress.end()
        self._remember(level, folder, environment)
        return folder

    def _remember(self, level, folder, environment=None):
        ends = [_end_of(path) or {} for path in trace_files(folder).values()]
        digests = sorted(end["weights"] for end in ends if end.get("weights"))  # who of several did what may be chance
        if digests and not environment:
            self._weights.append((level, " ".join(digests)))
        if level == "ops":
            self._ops.append(folder)

    def _tell(self, level, difference):
        if difference.culprits:
            first = difference.culprits[0]
            self._found("{}: first difference at step {}: {} {}".format(
                level, first["step"], first["op_type"], first["op_name"]))

    def _found(self, line):
        self.found.findings.append(line)
        self._progress.say("  " + text.shown(line))

    def _confirm(self, difference):
        """Ask the culprit itself: by replay, or by a run without what is suspected."""
        first = difference.culprits[0]
        if first["class"] == advice.FEED and not os.environ.get("PYTHONHASHSEED"):
            self._try_hash_seed(first, difference)
        if first["class"] == advice.KERNEL:
            self._replay(first, difference.steps_recorded)

    def _try_hash_seed(self, culprit, difference):
        """With PYTHONHASHSEED=0 sets have one order: does this culprit go away?"""
        steps = difference.steps_recorded
        self._progress.planned += 2
        fixed = {"PYTHONHASHSEED": "0"}
        pair = [self._run("ops", steps, environment=fixed) for _ in range(2)]
        found = diff.compare(pair)
        if any(_place(one) == _place(culprit) for one in found.culprits):
            self._found("with PYTHONHASHSEED=0 it still differs: the order of a set is not all that is behind it")
            return
        if found.result != "same":
            self._found("with PYTHONHASHSEED=0 this is the same, and something else still differs")
        else:
            self._found("with PYTHONHASHSEED=0 the runs are the same: the order of a set, or a hash, decides")
        book = advice.Book({"tensorflow": difference.headers[0].get("tensorflow"), "environment": {}})
        found = book.advise(advice.FEED, "python-set-order", culprit["device"])
        culprit.update(source=found.source, solution=found.solution, lines=found.lines,
                       advice="; ".join([found.text] + found.lines))

    def _replay(self, culprit, steps):
        """Run the one op again and again on the inputs that it had."""
        op = dict(culprit["key"], occurrence=culprit["occurrence"], rank=culprit["rank"])
        self._turn = 0
        folder = self._run("ops", steps, ["--capture", json.dumps(op)])
        kept = sorted(name for name in os.listdir(folder) if name.startswith("capture-"))
        if not kept:
            self._found("it could not be replayed: its inputs were not kept")
            return
        try:
            self._tell_of_replays(os.path.join(folder, kept[0]), folder)
        except Failed as error:
            self._found("it could not be replayed: {}".format(error.cause))

    def _tell_of_replays(self, path, folder):
        if self._schedules:
            self.found.replay, lines = self._schedules.replayed(
                lambda environment: self._launcher.replay(path, 2, environment), folder)
            words = "run alone on the same inputs in {times} schedules: {distinct} different results"
        else:
            told, lines = self._launcher.replay(path, REPLAYS), []
            self.found.replay = {"times": told["times"], "distinct": max(told["distinct"] or [1])}
            words = "replayed {times} times on the same inputs: {distinct} different results"
        for line in [words.format(**self.found.replay)] + lines:
            self._found(line)

    def _compare_with_untraced(self):
        """Did instrumenting change what is trained? Only a run that repeats itself can tell."""
        untraced, traced = self._digests("none"), self._digests("weights", "layers", "open", "ops")
        if not untraced or not traced:
            self._found("final weights could not be compared with those of an untraced run")
        elif self._untraced_differ():
            self._found("final weights differ from run to run, traced or not" if len(traced) > 1 else
                        "final weights differ from run to run where nothing is traced")
        elif untraced <= traced:
            self._found("final weights: bit-identical to those of an untraced run")
        elif len(traced) == 1:
            self._found("final weights differ from those of an untraced run: instrumenting changed the program")
        else:
            self._found("final weights differ from run to run, traced or not")


def _is_coarse(difference):
    """Do only weights, losses or layers tell of it, or the final weights alone?"""
    if difference.reach:
        return False
    if difference.culprits:
        return difference.headers[0].get("level") not in ("open", "ops")
    return difference.first_step is None


def _at_line(culprit):
    return " ({}:{})".format(culprit["file"], culprit["line"]) if culprit["file"] else ""


def _is_cause(culprit):
    """Not what began before the steps that were recorded."""
    return culprit["why"] not in (describe.UNEXPLAINED, describe.BEFORE)


def _place(culprit):
    return [culprit[name] for name in ("op_type", "op_name", "function", "thread")]


def _end_of(path):
    reader = Reader(path)
    try:
        return next((value for kind, value in reader if kind == "end"), None)
    finally:
        reader.close()
