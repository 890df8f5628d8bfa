"""The search for a culprit by traces: which runs are made and compared, and what follows from them.

Probes are the calls that a trace inserts into the framework to digest values. The level of a run says of which: "none"
(an untraced run), "weights" (and losses), "layers", "unordered" (ops whose order a graph leaves open), "ops" (all).
"""

import os

from ..causes import describe, files_read, trace_diff
from ..faults import Fault
from ..schema.format import TraceFormatError
from ..untrusted import sanitize_line
from . import run_ends
from .confirmation import Confirmation
from .fix_trial import FixTrial
from .program_runner import NothingRecordedError, ProgramFailedError, ProgramRunner
from .progress import Progress
from .result import SearchResult
from .schedules import Schedules


class Search(object):
    """One search for a culprit.

    program: argv of the user's program; folder: for traces; runs: maximum at each level while none differ; steps:
    (first, end) or None, to record no other steps; schedules: a schedules.Schedules that distinguishes the runs; fix:
    whether to try the advice.
    """

    def __init__(self, program, folder, runs=5, steps=None, progress=None, runner=None, schedules=None, fix=False):
        self._folder, self._limit, self._steps, self._fix = folder, runs, steps, fix
        self._runner = runner or ProgramRunner(program, folder)
        self._schedules = schedules or Schedules()
        self._run_number = 0  # number of the run among those that are compared with each other
        self._progress = progress or Progress(1 + 2 + 2 + 2 + 1 + 1)  # untraced, weights, layers, ops, untraced twice
        self._count = 0
        self._ends = run_ends.RunEnds()
        self._untraced_runs, self._ops = [], []  # folders of the runs without probes, and at level ops
        self.result = SearchResult()

    def search(self):
        """Return the SearchResult. Raises ProgramFailedError, TraceFormatError."""
        self._run_untraced(0)
        closest = self._find_closest_difference()
        self._run_untraced(1)
        if closest is None and not self._untraced_differ():
            self._run_untraced(2)  # a race may occur in some runs only
        if closest is None and self._untraced_differ() and not self._is_left_by_first_run():
            closest = self._compare_ops(self._steps)
        if closest is not None:
            self._make_result(closest)
        if not self.result.unlocated and (self._untraced_differ() if closest is None else _is_coarse(closest)):
            self._search_hidden_difference(closest)
        self._compare_with_untraced()
        if self._fix and self.result.result != "same":
            self._progress.planned += 2 * self._limit
            trial = FixTrial(self._run_untraced_fix, self._classify_fixed_runs, self._limit)
            self.result.fix = trial.run(self.result.culprits)
        if self._runner.fallback_calls:
            self._add_finding("computed by CPU fallbacks, so not evidence about NVIDIA's library: {}".format(
                ", ".join(sorted(self._runner.fallback_calls))))
        return self.result

    def entry(self):
        """Return the SearchResult for a program whose cause is known: traces show where it enters the tensors."""
        try:
            weights = self._compare_weights()
            step = weights.first_step if weights is not None else None
            closest = self._find_at_step(step) if step is not None else self._compare_ops(self._steps)
            self.result.traced_alike = weights is None and closest is None
        except (ProgramFailedError, TraceFormatError) as error:
            self._add_finding("where it enters the tensors is not known: {}".format(error.cause))
            closest = None
        self.result.result = "diverged"
        if closest is not None:
            self.result.difference, self.result.culprits = closest, closest.culprits
            self.result.result = closest.result if closest.result != "same" else "diverged"
        return self.result

    def _compare_weights(self):
        """Return the TraceDiff of two runs at level weights; None if they agree or have no weights."""
        try:
            return self._run_until_different("weights", self._steps)
        except (NothingRecordedError, trace_diff.NoRecordsError):
            return None

    def _run_untraced(self, number):
        self._run_number = number
        return self._run("none", None)

    def _make_result(self, closest):
        self.result.difference, self.result.result, self.result.culprits = closest, closest.result, closest.culprits
        if not _is_coarse(closest):
            self._report_first_difference(closest.headers[0]["level"], closest)
            if closest.culprits:
                confirmation = Confirmation(closest, self.result, self._folder, self._runner, self._schedules)
                confirmation.confirm(self._run_extra, self._run_until_different, self._add_finding)

    def _is_left_by_first_run(self):
        """Return whether only the first run differs, and it left a file that the later runs read."""
        if not self._ends.only_first_differs():
            return False
        files = files_read.files_left_behind(*[self._untraced_runs[index] for index in (0, -1)])
        if files:
            self.result.set_first_run_differs(len(self._ends), files)
        return bool(files)

    def _search_hidden_difference(self, closest):
        """Search for a difference that appears between runs although every recorded op agrees."""
        if len(self._ops) < 2:
            self._compare_ops(self._steps)
        difference = self._compare_unordered_ops()
        if difference is None or not difference.culprits:
            difference = self._run_rounds()
        if difference is not None:
            self._add_finding(
                "in {} runs with probes at every op none that was recorded differed".format(len(self._ops)))
            self._make_result(difference)
        elif self.result.masked_by_tracing:
            step = (closest and closest.first_step) or 0
            self.result.culprits = trace_diff.unordered_candidates(self._ops[-2:], step)
        elif closest is None:
            self._report_ends()
        else:
            self._add_finding("no op that was recorded differed in {} runs; of final weights, {}".format(
                len(self._ops), self._ends.describe() if len(self._ends) else "nothing is known"))

    def _report_ends(self):
        if not self._ends.only_first_differs():
            self.result.set_ends_differ(self._ends.describe())
            return
        self.result.set_first_run_differs(len(self._ends))
        self._add_finding("if it left something behind, a cache or a checkpoint, the later runs went on from there: "
                          "run each in a fresh copy of the folder")

    def _run_rounds(self):
        """Alternate runs without probes and with probes at every op; return the first TraceDiff of these, or None.

        The result says that probes hide the difference if enough of the untraced runs differ and none of the others.
        """
        rounds, first_traced = run_ends.Rounds(), None
        for _ in range(2):
            self._progress.planned += 2 * run_ends.MIN_ROUNDS
            for number in range(run_ends.MIN_ROUNDS):
                untraced, traced = self._run_untraced(number), self._run("ops", self._steps)
                first_traced = first_traced or traced
                difference = trace_diff.compare([first_traced, traced])
                if difference.culprits or difference.first_step is not None:
                    return difference
                rounds.add(*map(run_ends.digest_of_weights, (untraced, traced)))
            if rounds.is_significant():
                self.result.masked_by_tracing, self.result.result = True, "diverged"
                self._add_finding(rounds.describe())
            if rounds.is_significant() or rounds.is_hopeless():
                break
        return None

    def _compare_unordered_ops(self):
        """Return the TraceDiff of runs that record only ops whose order their graphs leave open, or None.

        All other ops run as they do without probes.
        """
        try:
            return self._run_until_different("unordered", self._steps)
        except (NothingRecordedError, TraceFormatError):
            return None

    def _run_extra(self, *arguments, **options):
        """Make one run more than was planned, as the first of those that are compared."""
        self._run_number = 0
        self._progress.planned += 1
        return self._run(*arguments, **options)

    def _untraced_differ(self):
        return len(self._ends.distinct(traced=False)) > 1

    def _find_closest_difference(self):
        """Return the TraceDiff that shows a difference most closely, or None while all runs are the same."""
        try:
            weights = self._run_until_different("weights", self._steps)
        except (NothingRecordedError, trace_diff.NoRecordsError):  # no training steps: only ops can tell
            return self._compare_ops(self._steps)
        if weights is None and not self._ends.distinct(traced=False):  # no weights: a loss alone tells little
            return self._compare_ops(self._steps)
        if weights is None and self._schedules:
            self._add_finding("weights and losses agree: a small difference may round away before it reaches them")
            return self._compare_ops(self._steps)
        if weights is None or weights.end_mismatch and not weights.culprits:
            return weights
        return self._refine_below_weights(weights) or weights

    def _refine_below_weights(self, weights):
        """Compare layers and then ops after weights differed; return the TraceDiff of the ops, or None."""
        self.result.values = weights.values
        self._report_first_difference("weights", weights)
        step = weights.first_step
        if step is None:
            return self._compare_ops(self._steps)
        try:
            layers = self._run_until_different("layers", (0, step + 1))
        except (NothingRecordedError, trace_diff.NoRecordsError):
            layers = None  # a program without layers
        if layers is not None and layers.first_step is not None:
            self._report_first_difference("layers", layers)
            step = min(step, layers.first_step)
        return self._find_at_step(step)

    def _find_at_step(self, step):
        """Return the TraceDiff of the ops at a step, or from the first step on if that shows no cause.

        An earlier step may be needed because an op may have received the difference from a value that was not
        recorded.
        """
        difference = None
        if step:
            try:
                difference = self._compare_ops((step, step + 1))
            except (NothingRecordedError, TraceFormatError):
                pass  # its ops belong to another step
        if not _names_cause(difference) or step and _is_unexplained(difference):
            longer = self._compare_ops((0, step + 1))
            difference = longer if _names_cause(longer) or not _names_cause(difference) else None
        if difference is not None and not _is_coarse(difference) and _names_cause(difference):
            return difference
        later = self._compare_ops(self._steps)  # a race may occur at a later step this time
        return later if _names_cause(later) else difference

    def _compare_ops(self, steps):
        return self._run_until_different("ops", steps)

    def _run_until_different(self, level, steps, more=()):
        """Return the first TraceDiff of two runs that differ in a record, else in their final weights.

        None is returned if all runs are the same. more: options of `trace run`.
        """
        self._run_number = 0
        runs, unseen = [self._run(level, steps, more)], None
        for number in range(1, self._limit):
            self._run_number = number
            runs.append(self._run(level, steps, more))
            difference = trace_diff.compare([runs[0], runs[-1]])
            if difference.culprits or difference.end_mismatch or difference.first_step is not None:
                return difference if difference.culprits or len(runs) < 3 else trace_diff.compare(runs)
            unseen = unseen or (difference if difference.result != "same" else None)
            if number > 1 or level == "weights":
                self._progress.planned += 1
        return unseen

    def _run(self, level, steps, more=(), environment=None, fixed=False):
        """Run the program once at a level and return the folder with its traces. fixed: whether the advice is tried."""
        self._count += 1
        self.result.runs += level != "none" and not fixed
        folder = os.path.join(self._folder, "{:02d}-{}".format(self._count, level))
        options = ["--out", folder, "--level", level] + list(more)
        if steps is not None:
            options += ["--steps", "{}:{}".format(*steps)]
        description = "without probes" if level == "none" else "digests of {}".format(level)
        description += ", with the advice" if fixed and (more or environment) else ""
        self._progress.begin_run("run {}, {}".format(self._count, description))
        with self._schedules.require_launches(folder if self._count == 1 else None):
            self._runner.record(self._count, options, self._schedules.run_environment(self._run_number, environment))
        self._progress.end_run()
        if not fixed:
            self._store_digests(level, folder, environment)
        return folder

    def _store_digests(self, level, folder, environment=None):
        digest = run_ends.digest_of_weights(folder)
        if digest and not environment:
            self._ends.add(level, digest)
        if level in ("none", "ops") and not environment:
            (self._ops if level == "ops" else self._untraced_runs).append(folder)

    def _report_first_difference(self, level, difference):
        if difference.culprits:
            culprit = difference.culprits[0]
            self._add_finding("{}: first difference at step {}: {} {}".format(
                level, culprit["step"], culprit["op_type"], culprit["op_name"]))

    def _add_finding(self, line):
        self.result.findings.append(line)
        self._progress.print_line("  " + sanitize_line(line))

    def _run_untraced_fix(self, options, environment, number):
        """Run the program without probes and return the digest of its final weights, or None."""
        self._run_number = number
        folder = self._run("none", None, options, environment, fixed=True)
        return run_ends.digest_of_weights(folder)

    def _classify_fixed_runs(self, options, environment):
        """Run with probes at every op; return for each run the number of the first run that it equals."""
        steps = self.result.difference.steps_recorded if self.result.difference else self._steps
        distinct, numbers = [], []
        for number in range(self._limit):
            self._run_number = number
            folder = self._run("ops", steps, options, environment, fixed=True)
            matches = [other for other in distinct if trace_diff.compare([other, folder]).result == "same"]
            distinct += [] if matches else [folder]
            numbers.append(distinct.index(matches[0] if matches else folder))
        return numbers

    def _compare_with_untraced(self):
        """Report whether instrumenting changed the final weights, if the program repeats itself."""
        untraced, traced = (self._ends.distinct(is_traced) for is_traced in (False, True))
        if not untraced or not traced:
            self._add_finding("final weights could not be compared with those of an untraced run")
        elif len(untraced) > 1 or len(traced) > 1 and not untraced <= traced:
            self._add_finding("final weights differ from run to run: " + self._ends.describe())
        elif untraced <= traced:
            self._add_finding("final weights: bit-identical to those of an untraced run")
        else:
            self._add_finding("final weights differ from those of an untraced run: instrumenting changed the program")


def _names_cause(difference):
    """Return whether a TraceDiff names a cause. difference: a trace_diff.TraceDiff, or None."""
    return difference is not None and any(map(_is_cause, difference.culprits))


def _is_unexplained(difference):
    return difference.culprits[0]["class"] == Fault.UNEXPLAINED.value


def _is_coarse(difference):
    """Return whether only weights, losses or layers show the difference, or the final weights alone."""
    if difference.end_mismatch:
        return False
    if difference.culprits:
        return difference.headers[0].get("level") not in ("unordered", "ops")
    return difference.first_step is None


def _is_cause(culprit):
    """Return whether a culprit is a cause, and did not begin before the steps that were recorded."""
    return culprit["why"] not in (describe.UNEXPLAINED_TEXT, describe.PREEXISTING_TEXT)
