"""All of `locate`: the cause by interventions, then where it enters by traces; traces alone where no pin takes it
away."""

import os
import shutil
import sys

from .cause_search import CauseSearch
from .interposed_runs import WEIGHTS, InterposedRuns
from .launcher import DeviceUnusedError, Launcher, NothingRecordedError, ProgramFailedError
from .program_copy import ProgramCopy, TooLargeError
from .progress import Progress
from .proven_cause import NOT_TRIED, PROVEN, SAME, TRACE_ONLY, Interventions
from .result import SearchResult
from .schedules import Schedules
from .search import Search
from .source_fix_trial import SourceFixTrial

_PYTHON = (3, 7)  # that can be interposed, and later
_FIRST_PLANNED = 12  # runs that a program with one cause takes


class Locate(object):
    """One search. program: argv of the user's program; runs: at most so many while none
    differ; schedules: a schedules.Schedules; fix: is the fix to be tried?; trace_only: compare traces, and pin
    nothing; steps: training steps after which each run is ended, None for none."""

    def __init__(self, program, runs=5, schedules=None, fix=False, trace_only=False, steps=None):
        self._program, self._runs, self._fix = program, runs, fix
        self._folder = ""
        self._schedules, self._trace_only = schedules or Schedules(), trace_only
        self._steps = steps
        self._progress = Progress(_FIRST_PLANNED)
        self._copy = None  # type: ProgramCopy | None
        self._cause_search = None  # type: CauseSearch | None

    def run(self, folder):
        """The SearchResult. folder: for copies and traces, of which these stay there.

        Raises ProgramFailedError, TraceFormatError, OSError.
        """
        self._folder = folder
        try:
            found = self._interventions()
            return self._with_traces(found)
        finally:
            if self._copy is not None:
                self._copy.close()
            shutil.rmtree(self._sandbox(), ignore_errors=True)

    def known(self):
        """Lines: what is known so far, of a search that was stopped."""
        if self._cause_search is None or not self._cause_search.found.runs:
            return []
        found = self._cause_search.found
        ends = "{}: {} runs without pins, {} different ends".format(found.compared, len(found.runs), found.distinct)
        return ["so far: " + line for line in [ends] + found.tried]

    def as_users(self, text):
        """Paths of the copy in a report, as they are in the user's folder."""
        return self._copy.out_of_copy(text) if self._copy is not None else text

    def _interventions(self):
        found = Interventions()
        found.why = self._obstacle()
        if found.why:
            return found
        sandbox = self._sandbox()
        os.makedirs(sandbox)
        try:
            copy = self._copy = ProgramCopy(self._program, sandbox)
        except TooLargeError as error:
            found.why = "the program's folder is not copied: {}".format(error)
            return found
        runs = InterposedRuns(self._launcher(copy), copy, sandbox, self._schedules, self._progress)
        search = self._cause_search = CauseSearch(runs, copy, self._runs, self._schedules, self._progress)
        try:
            found = search.search()
        except DeviceUnusedError:
            raise
        except ProgramFailedError:
            return self._not_interposed(copy)
        if found.verdict == PROVEN:
            fixes = SourceFixTrial(search, copy)
            fixes.suggest()
            if self._fix:
                fixes.run()
        found.total = runs.count
        return found

    def _sandbox(self):
        return os.path.join(os.path.realpath(self._folder), "copy")

    def _obstacle(self):
        """Why no pin is tried, or None."""
        if self._trace_only:
            return TRACE_ONLY
        if sys.version_info < _PYTHON or not sys.platform.startswith("linux"):
            return "it needs Python {}.{} or later on Linux".format(*_PYTHON)
        return None

    def _not_interposed(self, copy):
        """The program failed: does it fail without us, too? Raises ProgramFailedError then."""
        copy.restore()
        self._launcher(copy).record(1, ["--out", os.path.join(self._folder, "plain"), "--level", "none"])
        found = Interventions()
        found.why = "the program failed in a run in which its calls were noted, and not in one without"
        return found

    def _launcher(self, copy):
        program, cwd = (self._program, None) if copy is None else (copy.program, copy.cwd)
        return Launcher(program, self._folder, cwd, self._steps)

    def _with_traces(self, found):
        if found.verdict == SAME and found.compared == WEIGHTS and not self._schedules:
            result = SearchResult()
            result.runs = len(found.runs)
        elif found.verdict == PROVEN and "schedule" not in [cause.kind.name for cause in found.causes]:
            result = self._search(Schedules(), fix=False).entry()
        else:
            result = self._whole_search(found)
        result.set_interventions(found)
        if self._steps is not None:
            result.findings.append("each run was ended after {} training steps".format(self._steps))
        return result

    def _whole_search(self, found):
        try:
            return self._search(self._schedules, self._fix).search()
        except NothingRecordedError as error:
            if found.verdict == NOT_TRIED:
                raise
            result = SearchResult()  # of a program without a framework the end of its runs is all there is
            result.runs = len(found.runs)
            result.findings.append("compared by {}: {}".format(found.compared, error.cause))
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
            launcher=self._launcher(self._copy),
            schedules=schedules,
            fix=fix,
        )
