"""Take the advice and see: does the program repeat itself then, and how long does it take?"""

import collections
import statistics
import time

from . import fixes
from .launcher import ProgramFailedError

REPEATS, DIFFERS, FAILS, BY_HAND = "repeats", "differs", "fails", "by hand"


class Fix(object):
    """The fixes that were tried, and how the program ran with them.

    result: REPEATS, DIFFERS, FAILS or BY_HAND; applied: the AutomaticFixes; manual_changes: culprits that only a change
    of the program fixes; with_fix, without_fix: Outcomes; error: why the program failed with the fixes, or None;
    compared_by_ops: were the runs compared op by op, because they have no weights?
    """

    def __init__(self, applied, manual_changes):
        self.result = BY_HAND
        self.applied, self.manual_changes = applied, manual_changes
        self.with_fix, self.without_fix = Outcomes(), Outcomes()
        self.error = None
        self.compared_by_ops = False

    @property
    def ratio(self):
        """How many times as long the program takes; None where that is not known."""
        both = [statistics.median(one.seconds or [0]) for one in (self.with_fix, self.without_fix)]
        return round(both[0] / both[1], 3) if all(both) else None

    def as_json(self):
        applied = [{"solution": one.key, "words": one.description} for one in self.applied]
        return {"result": self.result, "applied": applied,
                "manual_changes": [{name: one[name] for name in ("op_type", "file", "line", "class", "lines")}
                            for one in self.manual_changes],
                "compared": "every op" if self.compared_by_ops else "final weights", "ratio": self.ratio,
                "error": self.error, "with": self.with_fix.as_json(), "without": self.without_fix.as_json(),
                "lines": self.lines()}

    def lines(self):
        """For people."""
        said = []
        if self.applied:
            said.append("applied from outside: " + "; ".join("{} ({})".format(one.description, one.key)
                                                             for one in self.applied))
            said.append(self._outcome())
        for one in self.manual_changes:
            where = "{}:{}".format(one["file"], one["line"]) if one["file"] else "no line of yours"
            said.append("not from outside: {} ({}) needs a change of the program's own code{}".format(
                one["op_type"], where, ":" if one["lines"] else ""))
            said += ["    " + line for line in one["lines"]]
        return said or ["no automatic fix is known"]

    def _outcome(self):
        if self.result == FAILS:
            return "with it the program fails: {}".format(self.error)
        found = self.with_fix
        said = "with it the program {}: {} of {} runs end alike".format(
            "repeats itself" if self.result == REPEATS else "still differs", found.identical, found.runs)
        if self.compared_by_ops:
            said += ", op by op: it has no weights to compare"
        else:
            said += " (without it {} of {})".format(self.without_fix.identical, self.without_fix.runs)
        if self.ratio:
            said += "; it takes {:.2f} times as long ({:.1f} s, without it {:.1f} s)".format(
                self.ratio, statistics.median(found.seconds), statistics.median(self.without_fix.seconds))
        return said


class Outcomes(object):
    """How some runs ended: digests, None for a run without weights; seconds of each."""

    def __init__(self):
        self.digests, self.seconds = [], []

    @property
    def runs(self):
        return len(self.digests)

    @property
    def identical(self):
        """How many runs end as most of them do."""
        return max(collections.Counter(self.digests).values()) if self.digests else 0

    def as_json(self):
        return {"runs": self.runs, "identical": self.identical, "distinct": len(set(self.digests)),
                "seconds": self.seconds}


class FixTrial(object):
    """record(options, environment, turn): runs the program once without probes, and gives the digest of its final
    weights, or None. differ(options, environment): of a program without weights, digests of runs that are compared op
    by op."""

    def __init__(self, record, differ, runs, clock=time.time):
        self._record, self._differ, self._runs, self._clock = record, differ, runs, clock

    def run(self, culprits):
        """The Fix for these."""
        fix = Fix(*fixes.automatic_fixes(culprits))
        if fix.applied:
            calls = [one.key for one in fix.applied if one.call]
            environment = {}
            for one in fix.applied:
                environment.update(one.environment)
            try:
                self._try(fix, ["--apply-solutions", ",".join(calls)] if calls else [], environment)
            except ProgramFailedError as error:
                fix.result, fix.error = FAILS, error.cause
        return fix

    def _try(self, fix, options, environment):
        for turn in range(self._runs):  # in turns: what else the machine does meets both
            self._run(fix.without_fix, [], {}, turn)
            self._run(fix.with_fix, options, environment, turn)
        if None in fix.with_fix.digests:
            fix.compared_by_ops = True
            fix.with_fix.digests = self._differ(options, environment)
        fix.result = REPEATS if fix.with_fix.identical == fix.with_fix.runs else DIFFERS

    def _run(self, outcomes, options, environment, turn):
        began = self._clock()
        digest = self._record(options, environment, turn)
        outcomes.seconds.append(round(self._clock() - began, 3))
        outcomes.digests.append(digest)
