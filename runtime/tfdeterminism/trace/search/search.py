"""The search for a culprit: what is run and compared, and what is concluded."""

import os

from ..causes import describe, files_read, trace_diff
from ..faults import Fault
from ..schema.format import TraceFormatError
from ..untrusted import sanitize_line
from . import run_ends
from .confirmation import Confirmation
from .fix_trial import FixTrial
from .launcher import Launcher, NothingRecordedError, ProgramFailedError
from .progress import Progress
from .result import SearchResult
from .schedules import Schedules


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
        self._ends = run_ends.RunEnds()
        self._untraced_runs, self._ops = [], []  # folders of the runs without probes, and at level ops
        self.found = SearchResult()

    def search(self):
        """The SearchResult. Raises ProgramFailedError, TraceFormatError."""
        self._untraced(0)
        closest = self._look()
        self._untraced(1)
        if closest is None and not self._untraced_differ():
            self._untraced(2)  # a race strikes some runs only
        if closest is None and self._untraced_differ() and not self._left_behind():
            closest = self._among_ops(self._steps)
        if closest is not None:
            self._conclude(closest)
        if not self.found.unlocated and (self._untraced_differ() if closest is None else _is_coarse(closest)):
            self._unseen(closest)
        self._compare_with_untraced()
        if self._fix and self.found.result != "same":
            self._progress.planned += 2 * self._limit
            self.found.fix = FixTrial(self._outcome, self._differ, self._limit).run(self.found.culprits)
        if self._launcher.fallback_calls:
            self._found("computed by CPU fallbacks, so not evidence about NVIDIA's library: {}".format(
                ", ".join(sorted(self._launcher.fallback_calls))))
        return self.found

    def entry(self):
        """The SearchResult of traces alone, of a program whose cause is known: where it enters the tensors."""
        try:
            weights = self._weights_differ()
            step = weights.first_step if weights is not None else None
            closest = self._at(step) if step is not None else self._among_ops(self._steps)
        except (ProgramFailedError, TraceFormatError) as error:
            self._found("where it enters the tensors is not known: {}".format(error.cause))
            closest = None
        self.found.result = "diverged"
        if closest is not None:
            self.found.difference, self.found.culprits = closest, closest.culprits
            self.found.result = closest.result if closest.result != "same" else "diverged"
        return self.found

    def _weights_differ(self):
        """The TraceDiff of two runs at level weights; None where they agree, or there are none."""
        try:
            return self._until_different("weights", self._steps)
        except (NothingRecordedError, trace_diff.NoRecordsError):
            return None

    def _untraced(self, turn):
        self._turn = turn
        return self._run("none", None)

    def _conclude(self, closest):
        self.found.difference, self.found.result, self.found.culprits = closest, closest.result, closest.culprits
        if not _is_coarse(closest):
            self._tell(closest.headers[0]["level"], closest)
            if closest.culprits:
                again = Confirmation(closest, self.found, self._folder, self._launcher, self._schedules)
                again.confirm(self._again, self._until_different, self._found)

    def _left_behind(self):
        """Does only the first run end otherwise, and has it left a file that the later ones read?"""
        if not self._ends.only_first_differs():
            return False
        left = files_read.files_left_behind(*[self._untraced_runs[at] for at in (0, -1)])
        if left:
            self.found.set_first_run_differs(len(self._ends), left)
        return bool(left)

    def _unseen(self, closest):
        """The program differs from run to run, and every op that was recorded agrees."""
        if len(self._ops) < 2:
            self._among_ops(self._steps)
        seen = self._where_order_is_open()
        if seen is None or not seen.culprits:
            seen = self._in_turns()
        if seen is not None:
            self._found("in {} runs with probes at every op none that was recorded differed".format(len(self._ops)))
            self._conclude(seen)
        elif self.found.masked_by_tracing:
            self.found.culprits = trace_diff.unordered_candidates(self._ops[-2:], (closest and closest.first_step) or 0)
        elif closest is None:
            self._tell_ends()
        else:
            self._found("no op that was recorded differed in {} runs; of final weights, {}".format(
                len(self._ops), self._ends.describe() if len(self._ends) else "nothing is known"))

    def _tell_ends(self):
        if not self._ends.only_first_differs():
            self.found.set_ends_differ(self._ends.describe())
            return
        self.found.set_first_run_differs(len(self._ends))
        self._found("if it left something behind, a cache or a checkpoint, the later runs went on from there: "
                    "run each in a fresh copy of the folder")

    def _in_turns(self):
        """Runs without probes and with those at every op, in turns: the first TraceDiff of these, or None. Whether the
        probes hide what differs is said where enough of the ones differ, and none of the others."""
        rounds, first = run_ends.Rounds(), None
        for _ in range(2):
            self._progress.planned += 2 * run_ends.MIN_ROUNDS
            for number in range(run_ends.MIN_ROUNDS):
                untraced, traced = self._untraced(number), self._run("ops", self._steps)
                first = first or traced
                found = trace_diff.compare([first, traced])
                if found.culprits or found.first_step is not None:
                    return found
                rounds.add(*map(run_ends.digest_of_weights, (untraced, traced)))
            if rounds.is_significant():
                self.found.masked_by_tracing, self.found.result = True, "diverged"
                self._found(rounds.describe())
            if rounds.is_significant() or rounds.is_hopeless():
                break
        return None

    def _where_order_is_open(self):
        """The TraceDiff of the ops alone whose order the graphs leave open; they run as they do without us."""
        try:
            return self._until_different("unordered", self._steps)
        except (NothingRecordedError, TraceFormatError):
            return None  # there are none

    def _again(self, *arguments, **more):
        """One run more than was planned, as the first of those that are compared."""
        self._turn = 0
        self._progress.planned += 1
        return self._run(*arguments, **more)

    def _untraced_differ(self):
        return len(self._ends.distinct(traced=False)) > 1

    def _look(self):
        """The TraceDiff that looks closest, None while all runs are the same."""
        try:
            weights = self._until_different("weights", self._steps)
        except (NothingRecordedError, trace_diff.NoRecordsError):  # no training steps: only ops can tell
            return self._among_ops(self._steps)
        if weights is None and not self._ends.distinct(traced=False):  # no weights: a loss alone tells little
            return self._among_ops(self._steps)
        if weights is None and self._schedules:
            self._found("weights and losses agree: a small difference may round away before it reaches them")
            return self._among_ops(self._steps)
        if weights is None or weights.end_mismatch and not weights.culprits:
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
        except (NothingRecordedError, trace_diff.NoRecordsError):
            layers = None  # a program without layers
        if layers is not None and layers.first_step is not None:
            self._tell("layers", layers)
            step = min(step, layers.first_step)
        return self._at(step)

    def _at(self, step):
        """The difference of ops at this step; from the first step on where that shows no cause, or an op that may have
        got before what differs: what was not recorded is no input that agrees."""
        found = None
        if step:
            try:
                found = self._among_ops((step, step + 1))
            except (NothingRecordedError, TraceFormatError):
                pass  # its ops belong to another step
        if not _names_cause(found) or step and _is_unexplained(found):
            whole = self._among_ops((0, step + 1))
            found = whole if _names_cause(whole) or not _names_cause(found) else None
        if found is not None and not _is_coarse(found) and _names_cause(found):
            return found
        later = self._among_ops(self._steps)  # a race strikes when it may: this time later
        return later if _names_cause(later) else found

    def _among_ops(self, steps):
        return self._until_different("ops", steps)

    def _until_different(self, level, steps, more=()):
        """The TraceDiff of the first two runs that differ in a record, else in their final weights; None if all are
        the same. more: options of `trace run`."""
        self._turn = 0
        runs, unseen = [self._run(level, steps, more)], None
        for number in range(1, self._limit):
            self._turn = number
            runs.append(self._run(level, steps, more))
            found = trace_diff.compare([runs[0], runs[-1]])
            if found.culprits or found.end_mismatch or found.first_step is not None:
                return found if found.culprits or len(runs) < 3 else trace_diff.compare(runs)
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
        self._progress.begin_run("run {}, {}".format(self._count, what))
        with self._schedules.require_launches(folder if self._count == 1 else None):
            self._launcher.record(self._count, options, self._schedules.run_environment(self._turn, environment))
        self._progress.end_run()
        if not fixed:
            self._remember(level, folder, environment)
        return folder

    def _remember(self, level, folder, environment=None):
        digest = run_ends.digest_of_weights(folder)
        if digest and not environment:
            self._ends.add(level, digest)
        if level in ("none", "ops") and not environment:
            (self._ops if level == "ops" else self._untraced_runs).append(folder)

    def _tell(self, level, difference):
        if difference.culprits:
            first = difference.culprits[0]
            self._found("{}: first difference at step {}: {} {}".format(
                level, first["step"], first["op_type"], first["op_name"]))

    def _found(self, line):
        self.found.findings.append(line)
        self._progress.print_line("  " + sanitize_line(line))

    def _outcome(self, options, environment, turn):
        """Run it without probes: the digest of what it ends with, or None."""
        self._turn = turn
        folder = self._run("none", None, options, environment, fixed=True)
        return run_ends.digest_of_weights(folder)

    def _differ(self, options, environment):
        """Of runs with probes at every op: which are the same? The number of the first that each equals."""
        steps = self.found.difference.steps_recorded if self.found.difference else self._steps
        kinds, found = [], []
        for number in range(self._limit):
            self._turn = number
            folder = self._run("ops", steps, options, environment, fixed=True)
            same = [kind for kind in kinds if trace_diff.compare([kind, folder]).result == "same"]
            kinds += [] if same else [folder]
            found.append(kinds.index(same[0] if same else folder))
        return found

    def _compare_with_untraced(self):
        """Did instrumenting change what is trained? Only a run that repeats itself can tell."""
        untraced, traced = (self._ends.distinct(one) for one in (False, True))
        if not untraced or not traced:
            self._found("final weights could not be compared with those of an untraced run")
        elif len(untraced) > 1 or len(traced) > 1 and not untraced <= traced:
            self._found("final weights differ from run to run: " + self._ends.describe())
        elif untraced <= traced:
            self._found("final weights: bit-identical to those of an untraced run")
        else:
            self._found("final weights differ from those of an untraced run: instrumenting changed the program")


def _names_cause(difference):
    """difference: a trace_diff.TraceDiff, or None."""
    return difference is not None and any(map(_is_cause, difference.culprits))


def _is_unexplained(difference):
    return difference.culprits[0]["class"] == Fault.UNEXPLAINED.value


def _is_coarse(difference):
    """Do only weights, losses or layers tell of it, or the final weights alone?"""
    if difference.end_mismatch:
        return False
    if difference.culprits:
        return difference.headers[0].get("level") not in ("unordered", "ops")
    return difference.first_step is None


def _is_cause(culprit):
    """Not what began before the steps that were recorded."""
    return culprit["why"] not in (describe.UNEXPLAINED_TEXT, describe.PREEXISTING_TEXT)
