"""The search for a culprit: what is run and compared, and what is concluded."""

import io
import json
import os

from . import advice, comparison, describe, diff, text
from .fix import Trial
from .format import BadTrace, trace_files
from .launch import Failed, Launcher, NothingRecorded
from .located import Located
from .progress import Progress
from .reader import Reader
from .schedules import Schedules

REPLAYS = 30


class Search(object):
    """One search. program: argv of the user's program; folder: where traces go; runs: at most so many
    at each level while none differ; steps: (first, end) or None, to look at no others; schedules: a
    schedules.Schedules, by which runs are told apart; fix: is the advice to be tried?"""

    def __init__(self, program, folder, runs=5, steps=None, progress=None, launcher=None, schedules=None, fix=False):
        self._folder, self._limit, self._steps, self._fix = folder, runs, steps, fix
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
        if self._fix and self.found.result != "same":
            self._progress.planned += 2 * self._limit
            self.found.fix = Trial(self._outcome, self._differ, self._limit).of(self.found.culprits)
        if self._launcher.stood_in:
            self._found("stood in for on the CPU, so that it says nothing of NVIDIA's: {}".format(
                ", ".join(sorted(self._launcher.stood_in))))
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
                self._measure(closest)

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
        if weights is None and self._schedules:
            self._found("weights and losses agree: a small difference may round away before it reaches them")
            return self._among_ops(self._steps)
        if weights is None or weights.reach and not weights.culprits:
            return weights
        return self._descend(weights) or weights

    def _descend(self, weights):
        """From weights that differ to layers, to ops; the difference of ops, or None."""
        self.found.values = weights.values
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
        if not _names_cause(found):
            found = self._among_ops((0, step + 1)) or found
        if found is None or not _is_coarse(found):
            return found
        later = self._among_ops(self._steps)  # a race strikes when it may: this time later
        return later if _names_cause(later) else found

    def _among_ops(self, steps):
        return self._until_different("ops", steps)

    def _until_different(self, level, steps, more=()):
        """The Difference of the first two runs that differ in a record, else in their final weights; None if all are
        the same. more: options of `trace run`."""
        self._turn = 0
        runs, unseen = [self._run(level, steps, more)], None
        for number in range(1, self._limit):
            self._turn = number
            runs.append(self._run(level, steps, more))
            found = diff.compare([runs[0], runs[-1]])
            if found.culprits or found.reach or found.first_step is not None:
                return found if found.culprits or len(runs) < 3 else diff.compare(runs)
            unseen = unseen or (found if found.result != "same" else None)
            if number > 1 or level == "weights":
                self._progress.planned += 1
        return unseen

    def _run(self, level, steps, more=(), environment=None, fixed=False):
        """Run the program once at a level; the folder with its traces. fixed: to try the advice."""
        self._count += 1
        self.found.runs += level != "none" and not fixed
        folder = os.path.join(self._folder, "{:02d}-{}".format(self._count, level))
        options = ["--out", folder, "--level", level] + list(more)
        if steps is not None:
            options += ["--steps", "{}:{}".format(*steps)]
        what = "without probes" if level == "none" else "digests of {}".format(level)
        what += ", with the advice" if fixed and (more or environment) else ""
        self._progress.begin("run {}, {}".format(self._count, what))
        self._launcher.record(self._count, options, self._schedules.environment(self._turn, environment))
        self._progress.end()
        if not fixed:
            self._remember(level, folder, environment)
        return folder

    def _remember(self, level, folder, environment=None):
        digests = _digests_of(folder)
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
        book = advice.Book(dict(difference.headers[0], environment={}))
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

    def _measure(self, difference):
        """By how much it differs: runs that keep values of the culprits, and of the way to the loss."""
        if not difference.path:
            return
        wanted = os.path.join(self._folder, "values.json")
        with io.open(wanted, "w", encoding="utf-8") as target:
            target.write(json.dumps(difference.path))
        steps = difference.steps_recorded
        self._progress.planned += 2
        try:  # what a gradient spoils, the next step's loss tells
            seen = self._until_different("ops", steps and (steps[0], steps[1] + 1), ["--values", wanted])
        except (Failed, BadTrace) as error:
            self._found("by how much it differs is not known: {}".format(error.cause))
            return
        if seen is None:
            self._found("by how much it differs is not known: the runs that keep values agree")
        elif seen.values is not None:
            self.found.values = comparison.joined(seen.values, self.found.values)

    def _outcome(self, options, environment, turn):
        """Run it without probes: the digest of what it ends with, or None."""
        self._turn = turn
        folder = self._run("none", None, options, environment, fixed=True)
        return " ".join(_digests_of(folder)) or None

    def _differ(self, options, environment):
        """Of runs with probes at every op: which are the same? The number of the first that each equals."""
        steps = self.found.difference.steps_recorded if self.found.difference else self._steps
        kinds, found = [], []
        for number in range(self._limit):
            self._turn = number
            folder = self._run("ops", steps, options, environment, fixed=True)
            same = [kind for kind in kinds if diff.compare([kind, folder]).result == "same"]
            kinds += [] if same else [folder]
            found.append(kinds.index(same[0] if same else folder))
        return found

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


def _names_cause(difference):
    """difference: a diff.Difference, or None."""
    return difference is not None and any(map(_is_cause, difference.culprits))


def _is_coarse(difference):
    """Do only weights, losses or layers tell of it, or the final weights alone?"""
    if difference.reach:
        return False
    if difference.culprits:
        return difference.headers[0].get("level") not in ("open", "ops")
    return difference.first_step is None


def _is_cause(culprit):
    """Not what began before the steps that were recorded."""
    return culprit["why"] not in (describe.UNEXPLAINED, describe.BEFORE)


def _place(culprit):
    return [culprit[name] for name in ("op_type", "op_name", "function", "thread")]


def _digests_of(folder):
    """Of the final weights of each process that has any; which of several did what may be chance."""
    ends = [_end_of(path) or {} for path in trace_files(folder).values()]
    return sorted(end["weights"] for end in ends if end.get("weights"))


def _end_of(path):
    reader = Reader(path)
    try:
        return next((value for kind, value in reader if kind == "end"), None)
    finally:
        reader.close()
