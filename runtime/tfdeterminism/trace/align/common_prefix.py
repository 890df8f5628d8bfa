"""How far each run of a pair went: where one ends sooner, what both did is compared, and no more."""

import numpy

from .table import MISSING


class CommonPrefix(object):
    """The steps that both runs of a pair have completed.

    end_steps: for each run the first step that it did not complete; limit: the smaller of the two. is_uneven: did one
    run end sooner, or was one killed? Then a record that only one run has, from step `limit` on, is not a difference.
    """

    def __init__(self, pair):
        self._pair = pair
        self.end_steps = [_completed_steps(pair, side) for side in (0, 1)]
        self.limit = min(self.end_steps)
        window = pair.runs[0].header.get("steps")
        whole = all(run.is_complete for run in pair.runs)
        end_differs = self.end_steps[0] != self.end_steps[1]
        self.is_uneven = not whole or (end_differs and (not window or self.limit < window[1]))
        # A run that was cut short was still at the step; one that ended by itself did something else then.
        self._inside = any(not run.is_complete and end == self.limit for run, end in zip(pair.runs, self.end_steps))

    def clip(self, differs, missing):
        """Take out what cannot be compared. differs, missing: flags of all slots."""
        if not self.is_uneven:
            return
        step = self._pair.step
        apart = step[0] != step[1]
        beyond = numpy.maximum(step[0], step[1]) > self.limit - (not self._inside)
        differs &= ~beyond & ~(apart & (numpy.maximum(step[0], step[1]) >= self.limit))
        missing &= numpy.where(self._pair.order[0] == MISSING, step[1], step[0]) < self.limit

    def describe(self):
        """"A to step 15, where it was killed; B to step 1,000, its end"."""
        return "; ".join("{} to step {:,}, {}".format(name, end, _end_reason(run))
                         for name, end, run in zip("AB", self.end_steps, self._pair.runs))


def _completed_steps(pair, side):
    """A step that was begun is not one that was come through, as far as is known."""
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
