"""The progress of a search on standard error: the current run, and about how long the search still takes."""

import sys
import time


class Progress(object):
    """A counter of runs of a program. planned: the maximum of runs, as far as known."""

    def __init__(self, planned, out=None, clock=time.time):
        self.planned = planned
        self.done = 0
        self._out = out or sys.stderr
        self._clock = clock
        self._spent = 0.0
        self._began = None

    def begin_run(self, what):
        self._began = self._clock()
        seconds = self.seconds_left()
        tail = ", {} left".format(_duration(seconds)) if seconds is not None else ""
        self.print_line("[{}/{}] {}{}".format(self.done + 1, max(self.planned, self.done + 1), what, tail))

    def end_run(self):
        self._spent += self._clock() - self._began
        self.done += 1

    def seconds_left(self):
        """Return the remaining seconds by the mean of the runs so far; None before the first has ended."""
        if not self.done:
            return None
        return self._spent / self.done * max(self.planned - self.done, 1)

    def print_line(self, line):
        self._out.write(line + "\n")
        self._out.flush()


def _duration(seconds):
    """"about 40 s", "about 3 min"."""
    if seconds < 90:
        return "about {:.0f} s".format(max(seconds, 1))
    return "about {:.0f} min".format(seconds / 60.0)
