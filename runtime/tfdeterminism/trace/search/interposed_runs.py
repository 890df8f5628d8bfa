"""Runs of the program in its copy, with some kinds of nondeterminism pinned or varied, and their results.

Interposition wraps functions of libraries and notes in a ledger what the program gets from them. A pin makes a kind
give the same value in every run; to vary a kind is to give it another value for each seed.
"""

import ctypes
import json
import os
import shutil
import time

from .. import backends
from ..interpose import kinds, variables
from ..interpose.kinds.addresses import NO_RANDOMIZATION
from ..schema import ledger
from ..schema.format import TraceFormatError
from .program_runner import DeviceUnusedError, ProgramFailedError
from .run_ends import digest_of_weights, ends_of, has_framework
from .work import Work

WEIGHTS, FILES, PRINTED, ERRORS = "final weights", "written files", "printed text", "text on standard error"
_PATIENCE = 20        # maximum duration of a run with pins, as a multiple of a run without
_SHORTEST_LIMIT = 120  # seconds
_LONGEST_WAIT = 2     # of a pin for a started thread, as a multiple of a run without pins
_SHORTEST_WAIT = 5     # seconds, in addition
_UNKNOWN_WAIT = 600    # seconds, before a run without pins has ended
_PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # tfdeterminism
_TIME_ZONES = ("UTC-13", "UTC+11")  # a day apart, or nearly so
_VARIED_ENVIRONMENT = {
    "time-zone": lambda seed: {"TZ": _TIME_ZONES[seed % len(_TIME_ZONES)]},
    "hash-seed": lambda seed: {"PYTHONHASHSEED": str(1000 + seed)},
}


class InterposedRun(object):
    """The results of one run.

    failed: why it failed, None for a run that ended well; seconds: its duration; ledger: LedgerRows; files: {path:
    digest} of the files that it changed; ends: {WEIGHTS, FILES, PRINTED, ERRORS: what it ended with, or None}; work:
    how much it did.
    """

    def __init__(self, seconds, failed=None):
        self.seconds, self.failed = seconds, failed
        self.ledger, self.files = [], {}
        self.work = Work()
        self.ends = dict.fromkeys((WEIGHTS, FILES, PRINTED, ERRORS))  # type: dict


class InterposedRuns(object):
    """The runner of a program under interposition.

    runner: a program_runner.ProgramRunner; copy: a program_copy.ProgramCopy; folder: for ledgers and traces;
    schedules: a schedules.Schedules; progress: a progress.Progress. count: number of runs so far; run_on: {line that
    starts a thread for which a pin waited in vain: whether the thread waits itself}.
    """

    def __init__(self, runner, copy, folder, schedules, progress):
        self._runner, self._copy, self._schedules, self._progress = runner, copy, schedules, progress
        self._folder, self._out = os.path.join(folder, "interposed"), ""  # of all runs, and of the last
        self._epoch = time.time()
        self._plain_seconds = None  # the duration of the longest run without pins, once one has ended
        self.count, self.run_on = 0, {}

    def run(self, turn, pins=None, vary=None, what="without pins", require=False, more=None, level=None):
        """Run the program once and return an InterposedRun.

        turn: number of the run among those that are compared; pins: {kind: None, or its places}; vary: {kind: seed};
        what: description for the progress; require: whether the run must launch a kernel on the virtual GPU; more:
        additional environment variables; level: of detail of its trace, None for the lowest.
        """
        self.count += 1
        shutil.rmtree(self._folder, ignore_errors=True)
        # Each run has its own folder, because a process of the previous run may still write. Their names have the same
        # length, because the size of the environment shifts addresses.
        self._out = os.path.join(self._folder, "{:06d}".format(self.count))
        traces = os.path.join(self._out, "traces")
        os.makedirs(self._out)
        environment = dict(self._environment(pins or {}, vary or {}), **(more or {}))
        level = level or ("none" if self._runner.steps is None else "weights")  # the lowest level that counts steps
        options = ["--out", traces, "--level", level]
        self._progress.begin_run("run {}, {}".format(self.count, what))
        began, failed = time.time(), None
        try:
            with self._schedules.require_launches(os.path.join(self._out, "run") if require else None):
                environment.update(self._schedules.run_environment(turn) or {}, **self._pinned_schedule(pins or {}))
                prepare = _child_setup(pins or {}, vary or {})
                self._runner.record(self.count, options, environment, prepare, self._limit(pins or {}))
        except DeviceUnusedError:
            raise
        except ProgramFailedError as error:
            failed = None if self.count == 1 and self._is_chosen(error.chosen_code, traces) else error
        self._progress.end_run()
        run = InterposedRun(time.time() - began, failed)
        if not (pins or vary or more or failed):  # a pin may make a program wait for ever
            self._plain_seconds = max(self._plain_seconds or 0, run.seconds)
        run.ledger = ledger.read_ledgers(self._out)
        self.run_on.update((row.place, True) for row in run.ledger if row.what == kinds.WAITS)
        self.run_on.update((row.place, False) for row in run.ledger if row.what == kinds.RUNS_ON)
        run.files = self._copy.changed()
        if failed is None:
            run.ends = {
                WEIGHTS: digest_of_weights(traces),
                FILES: repr(sorted(run.files.items())) if run.files else None,
                PRINTED: self._runner.printed() or None,
                ERRORS: self._runner.errors(),
            }
            run.work = self._work(run, traces, level)
        return run

    def _work(self, run, traces, level):
        ends = ends_of(traces)
        sizes = {path: os.path.getsize(path) for path in run.files if os.path.isfile(path)}
        tensors = sum(len(end.get("variables") or ()) for end in ends)
        work = Work(tensors, sizes, run.ends[PRINTED] or "", run.ends[ERRORS] or "", has_framework(traces))
        work.steps = sum(row.count for row in run.ledger if row.kind == ledger.STEPS) or None
        if level != "none":
            steps, work.records = (sum(end.get(name) or 0 for end in ends) for name in ("steps", "records"))
            work.steps = work.steps or steps
        return work

    def _limit(self, pins):
        """Return the seconds that a run may take, None as long as no run without pins has ended.

        A program may wait for ever for a thread that does nothing.
        """
        if self._plain_seconds is None:
            return None
        if kinds.BackgroundThread.name in pins:
            return _LONGEST_WAIT * (self._longest_wait() + _SHORTEST_WAIT)
        return max(_PATIENCE * self._plain_seconds, _SHORTEST_LIMIT)

    def _longest_wait(self):
        """Return the seconds for which a started thread is waited for: alone it takes no longer than beside others."""
        if self._plain_seconds is None:
            return _UNKNOWN_WAIT
        return _LONGEST_WAIT * self._plain_seconds + _SHORTEST_WAIT

    def _is_chosen(self, code, traces):
        """Return whether the first run ended with a code that the program chose, which all runs are to end with.

        Code 1 is that of errors: it is chosen only if the program trained something. A process that ended without its
        trace, as by os._exit(), may have lost what it printed of an error.
        """
        if code is None:
            return False
        try:
            weights = digest_of_weights(traces)
        except TraceFormatError:
            return False
        if code == 1 and weights is None:
            return False
        self._runner.expected_code = code
        return True

    def _environment(self, pins, vary):
        settings = {  # of interposer.Interposer, which says what each means
            "root": self._copy.work,
            "project": self._copy.into_copy(_PROJECT),
            "out": self._out,
            "kept": self._copy.kept,
            "epoch": self._epoch,
            "pins": pins,
            "vary": vary,
            "frameworks": sorted(backends.entries()),
            "longest_wait": "{:06.1f}".format(min(self._longest_wait(), 9999)),  # always as long, as `out` is
        }
        python_path = [
            self._copy.into_copy(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path
        ]
        environment = {
            variables.SETTINGS_VARIABLE: json.dumps(settings, sort_keys=True),
            variables.POSITION: "0",
            "PYTHONPATH": variables.hooked_path(os.pathsep.join(python_path)),
            "TMPDIR": self._copy.temporary,
        }
        for name, places in sorted(pins.items()):
            if places is None:
                environment.update(kinds.BY_NAME[name].environment)
        for name, seed in vary.items():
            environment.update(_VARIED_ENVIRONMENT[name](seed) if name in _VARIED_ENVIRONMENT else {})
        return environment

    def _pinned_schedule(self, pins):
        return kinds.Schedule.environment if self._schedules and "schedule" in pins else {}


def _child_setup(pins, vary):
    """Return the function that the child calls before it becomes the program, or None."""
    if pins.get("addresses", ()) is None:
        return lambda: ctypes.CDLL(None).personality(NO_RANDOMIZATION)
    if "processors" in vary and hasattr(os, "sched_setaffinity"):
        return lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    return None

