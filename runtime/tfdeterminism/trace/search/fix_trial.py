"""The trial of the automatic fixes: whether the program repeats itself with them, and how long it takes.

An automatic fix needs no edit of the program: it sets variables or calls functions before the first op.
"""

import collections
import statistics
import time

from . import fixes
from .program_runner import ProgramFailedError

REPEATS, DIFFERS, FAILS, BY_HAND, NOT_SHOWN = "repeats", "differs", "fails", "by hand", "not shown"

_OUTCOMES = {
    REPEATS: "the program repeats itself",
    DIFFERS: "the program still differs",
    NOT_SHOWN: "and without it the program repeats itself, which shows nothing",
}


class Fix(object):
    """The fixes that were tried, and how the program ran with them.

    result: REPEATS, DIFFERS, FAILS, BY_HAND, or NOT_SHOWN if all runs without the fixes ended alike, too; applied: the
    AutomaticFixes; manual_changes: culprits that only a change of the program fixes; with_fix, without_fix: Outcomes;
    error: why the program failed with the fixes, or None; compared_by_ops: whether the runs were compared op by op,
    because they have no weights.
    """

    def __init__(self, applied, manual_changes):
        self.result = BY_HAND
        self.applied, self.manual_changes = applied, manual_changes
        self.with_fix, self.without_fix = Outcomes(), Outcomes()
        self.error = None
        self.compared_by_ops = False

    @property
    def ratio(self):
        """The duration with the fix divided by that without it, or None if it is not known."""
        medians = [statistics.median(outcomes.seconds or [0]) for outcomes in (self.with_fix, self.without_fix)]
        return round(medians[0] / medians[1], 3) if all(medians) else None

    def as_json(self):
        applied = [{"solution": fix.key, "words": fix.description} for fix in self.applied]
        return {"result": self.result, "applied": applied,
                "manual_changes": [{name: culprit[name] for name in ("op_type", "file", "line", "class", "lines")}
                                   for culprit in self.manual_changes],
                "compared": "every op" if self.compared_by_ops else "final weights", "ratio": self.ratio,
                "error": self.error, "with": self.with_fix.as_json(), "without": self.without_fix.as_json(),
                "lines": self.lines()}

    def lines(self):
        """Return the lines of the report for the user."""
        lines = []
        if self.applied:
            lines.append("applied from outside: " + "; ".join("{} ({})".format(fix.description, fix.key)
                                                              for fix in self.applied))
            lines.append(self._outcome())
        for culprit in self.manual_changes:
            location = "{}:{}".format(culprit["file"], culprit["line"]) if culprit["file"] else "no line of yours"
            lines.append("not from outside: {} ({}) needs a change of the program's own code{}".format(
                culprit["op_type"], location, ":" if culprit["lines"] else ""))
            lines += ["    " + line for line in culprit["lines"]]
        return lines or ["no automatic fix is known"]

    def _outcome(self):
        if self.result == FAILS:
            return "with it the program fails: {}".format(self.error)
        outcomes = self.with_fix
        text = "with it {}: {} of {} runs end alike".format(_OUTCOMES[self.result], outcomes.identical, outcomes.runs)
        if self.compared_by_ops:
            text += ", op by op: it has no weights to compare"
        else:
            text += " (without it {} of {})".format(self.without_fix.identical, self.without_fix.runs)
        if self.ratio:
            text += "; it takes {:.2f} times as long ({:.1f} s, without it {:.1f} s)".format(
                self.ratio, statistics.median(outcomes.seconds), statistics.median(self.without_fix.seconds))
        return text


class Outcomes(object):
    """How some runs ended. digests: of the final weights, None for a run without weights; seconds: of each run."""

    def __init__(self):
        self.digests, self.seconds = [], []

    @property
    def runs(self):
        return len(self.digests)

    @property
    def identical(self):
        """The number of runs that ended with the commonest digest."""
        return max(collections.Counter(self.digests).values()) if self.digests else 0

    def as_json(self):
        return {"runs": self.runs, "identical": self.identical, "distinct": len(set(self.digests)),
                "seconds": self.seconds}


class FixTrial(object):
    """The trial of automatic fixes.

    record(options, environment, turn): runs the program once without probes (calls that digest values) and returns
    the digest of its final weights, or None; differ(options, environment): returns a digest for each run of a program
    without weights, whose runs are compared op by op.
    """

    def __init__(self, record, differ, runs, clock=time.time):
        self._record, self._differ, self._runs, self._clock = record, differ, runs, clock

    def run(self, culprits):
        """Return the Fix for these culprits."""
        fix = Fix(*fixes.automatic_fixes(culprits))
        if fix.applied:
            calls = [applied_fix.key for applied_fix in fix.applied if applied_fix.call]
            environment = {}
            for applied_fix in fix.applied:
                environment.update(applied_fix.environment)
            try:
                self._try(fix, ["--apply-solutions", ",".join(calls)] if calls else [], environment)
            except ProgramFailedError as error:
                fix.result, fix.error = FAILS, error.cause
        return fix

    def _try(self, fix, options, environment):
        for turn in range(self._runs):  # alternately, so that other load on the machine affects both
            self._run(fix.without_fix, [], {}, turn)
            self._run(fix.with_fix, options, environment, turn)
        if None in fix.with_fix.digests:
            fix.compared_by_ops = True
            fix.with_fix.digests = self._differ(options, environment)
        repeats = fix.with_fix.identical == fix.with_fix.runs
        is_shown = fix.compared_by_ops or fix.without_fix.identical < fix.without_fix.runs
        fix.result = (REPEATS if is_shown else NOT_SHOWN) if repeats else DIFFERS

    def _run(self, outcomes, options, environment, turn):
        began = self._clock()
        digest = self._record(options, environment, turn)
        outcomes.seconds.append(round(self._clock() - began, 3))
        outcomes.digests.append(digest)
