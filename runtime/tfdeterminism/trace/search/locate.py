"""The steps of `locate`: interventions find the cause, and traces show where it enters.

Without a proven cause, traces alone name a culprit. An intervention runs the program with a pin, which gives it the
same value in every run for one kind of nondeterminism, such as the clock.
"""

import os
import shutil
import sys

from .cause_search import CauseSearch
from .interposed_runs import WEIGHTS, InterposedRuns
from .program_copy import ProgramCopy, TooLargeError
from .program_runner import DeviceUnusedError, NothingRecordedError, ProgramFailedError, ProgramRunner
from .progress import Progress
from .proven_cause import NOT_TRIED, PARTLY, PROVEN, SAME, TRACE_ONLY, Interventions
from .result import SearchResult
from .schedules import Schedules
from .search import Search
from .source_fix_trial import SourceFixTrial

_PYTHON = (3, 7)  # oldest version of Python that can be interposed
_FIRST_PLANNED = 12  # typical number of runs for a program with one cause


class Locate(object):
    """One search for the cause.

    program: argv of the user's program; runs: maximum while none differ; schedules: a schedules.Schedules; fix:
    whether to try the fix; trace_only: whether to compare traces without any pin; steps: training steps after which
    each run is ended, None for no limit; agree_runs: minimum of runs with a pin that must agree.
    """

    def __init__(self, program, runs=5, schedules=None, fix=False, trace_only=False, steps=None, agree_runs=0):
        self._program, self._runs, self._fix = program, runs, fix
        self._folder = ""
        self._schedules, self._trace_only = schedules or Schedules(), trace_only
        self._steps, self._agree_runs = steps, agree_runs
        self._expected_code = 0
        self._progress = Progress(_FIRST_PLANNED)
        self._copy = None  # type: ProgramCopy | None
        self._cause_search = None  # type: CauseSearch | None

    def run(self, folder):
        """Return the SearchResult. folder: for copies and traces, of which the traces remain.

        Raises ProgramFailedError, TraceFormatError, OSError.
        """
        self._folder = folder
        try:
            interventions = self._intervene()
            return self._with_traces(interventions)
        finally:
            if self._copy is not None:
                self._copy.close()
            shutil.rmtree(self._sandbox(), ignore_errors=True)

    def known(self):
        """Return lines about what is known so far, for a search that was stopped."""
        if self._cause_search is None or not self._cause_search.interventions.runs:
            return []
        interventions = self._cause_search.interventions
        ends = "{}: {} runs without pins, {} different ends".format(
            interventions.compared, len(interventions.runs), interventions.distinct)
        return ["so far: " + line for line in [ends] + interventions.tried]

    def as_users(self, text):
        """Return a report in which paths of the copy are replaced by those of the user's folder."""
        return self._copy.out_of_copy(text) if self._copy is not None else text

    def _intervene(self):
        interventions = Interventions()
        interventions.why = self._obstacle()
        if interventions.why:
            return interventions
        sandbox = self._sandbox()
        os.makedirs(sandbox)
        try:
            copy = self._copy = ProgramCopy(self._program, sandbox)
        except TooLargeError as error:
            interventions.why = "the program's folder is not copied: {}".format(error)
            return interventions
        runner = self._runner(copy)
        runs = InterposedRuns(runner, copy, sandbox, self._schedules, self._progress)
        search = self._cause_search = CauseSearch(
            runs, copy, self._runs, self._schedules, self._progress, self._agree_runs
        )
        try:
            interventions = search.search()
        except DeviceUnusedError:
            raise
        except ProgramFailedError:
            self._expected_code = runner.expected_code
            return self._check_without_interposition(copy)
        self._expected_code = runner.expected_code
        if interventions.verdict in (PROVEN, PARTLY):
            fixes = SourceFixTrial(search, copy)
            fixes.suggest()
            if self._fix and interventions.verdict == PROVEN:
                fixes.run()
        interventions.total = runs.count
        return interventions

    def _sandbox(self):
        return os.path.join(os.path.realpath(self._folder), "copy")

    def _obstacle(self):
        """Return the reason why no pin is tried, or None."""
        if self._trace_only:
            return TRACE_ONLY
        if sys.version_info < _PYTHON or not sys.platform.startswith("linux"):
            return "it needs Python {}.{} or later on Linux".format(*_PYTHON)
        return None

    def _check_without_interposition(self, copy):
        """Return Interventions for a program that fails only under interposition.

        Raises ProgramFailedError if it fails without interposition, too.
        """
        copy.restore()
        self._runner(copy).record(1, ["--out", os.path.join(self._folder, "plain"), "--level", "none"])
        interventions = Interventions()
        interventions.why = "the program failed in a run in which its calls were noted, and not in one without"
        return interventions

    def _runner(self, copy):
        if copy is None:
            runner = ProgramRunner(self._program, self._folder, steps=self._steps)
        else:
            runner = ProgramRunner(copy.program, self._folder, copy.cwd, self._steps, copy.temporary)
        runner.expected_code = self._expected_code
        return runner

    def _with_traces(self, interventions):
        if interventions.verdict == SAME and interventions.compared == WEIGHTS and not self._schedules:
            result = SearchResult()
            result.runs = len(interventions.runs)
        elif interventions.verdict in (PROVEN, PARTLY) and "schedule" not in interventions.kinds:
            result = self._search(Schedules(), fix=False).entry()  # where the cause enters the tensors
        else:
            result = self._search_by_traces(interventions)
        result.set_interventions(interventions)
        if self._expected_code:
            result.findings.append("each run ended with exit code {}".format(self._expected_code))
        if self._steps is not None:
            result.findings.append("each run was ended after {} training steps".format(self._steps))
        return result

    def _search_by_traces(self, interventions):
        try:
            return self._search(self._schedules, self._fix).search()
        except NothingRecordedError as error:
            if interventions.verdict == NOT_TRIED:
                raise
            result = SearchResult()  # a program without a framework has nothing to trace
            result.runs = len(interventions.runs)
            result.findings.append("compared by {}: {}".format(interventions.compared, error.cause))
            return result

    def _search(self, schedules, fix):
        program = self._program
        if self._copy is not None:
            self._copy.restore()
            program = self._copy.program
        return Search(
            program,
            self._folder,
            self._runs,
            progress=self._progress,
            runner=self._runner(self._copy),
            schedules=schedules,
            fix=fix,
        )
