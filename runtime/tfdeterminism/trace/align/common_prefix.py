"""The steps that both runs of a pair completed, which alone are compared if one run ends sooner.

A pair is a table.AlignedPair: for each run columns over slots, of which each is for a record and its counterpart in the
other run; pair.order is MISSING where a run has no such record.
"""

import numpy

from .table import MISSING


class CommonPrefix(object):
    """The steps that both runs of a pair have completed.

    end_steps: for each run the first step that it did not complete; limit: the smaller of the two. is_uneven: whether
    one run ended sooner or was killed. Then a record that only one run has, from step `limit` on, is not a difference.
    """

    def __init__(self, pair):
        self._pair = pair
        self.end_steps = [_completed_steps(pair, side) for side in (0, 1)]
        self.limit = min(self.end_steps)
        window = pair.runs[0].header.get("steps")
        are_complete = all(run.is_complete for run in pair.runs)
        end_differs = self.end_steps[0] != self.end_steps[1]
        self.is_uneven = not are_complete or (end_differs and (not window or self.limit < window[1]))
        # A run that was killed was still in that step; one that ended normally had left it.
        self._is_limit_incomplete = any(
            not run.is_complete and end == self.limit for run, end in zip(pair.runs, self.end_steps))

    def clip(self, differs, missing):
        """Clear the flags of slots that cannot be compared. differs, missing: flags of all slots."""
        if not self.is_uneven:
            return
        step = self._pair.step
        step_differs = step[0] != step[1]
        is_beyond = numpy.maximum(step[0], step[1]) > self.limit - (not self._is_limit_incomplete)
        differs &= ~is_beyond & ~(step_differs & (numpy.maximum(step[0], step[1]) >= self.limit))
        missing &= numpy.where(self._pair.order[0] == MISSING, step[1], step[0]) < self.limit

    def describe(self):
        """Return a text such as "A to step 15, where it was killed; B to step 1,000, its end"."""
        return "; ".join("{} to step {:,}, {}".format(name, end, _end_reason(run))
                         for name, end, run in zip("AB", self.end_steps, self._pair.runs))


def _completed_steps(pair, side):
    """Return the first step of a run that is not known to be complete."""
    run = pair.runs[side]
    steps = pair.step[side][pair.order[side] != MISSING]
    last = int(steps.max()) if len(steps) else 0
    return max(last, run.end.get("steps") or 0) if run.is_complete else last


def _end_reason(run):
    if run.damage:
        return "where the file is " + run.damage
    if not run.end:
        return "where it was killed"
    if run.end.get("error"):
        return "where recording ended: {}".format(run.end["error"])
    return "its end" if run.is_complete else "where it was stopped"
