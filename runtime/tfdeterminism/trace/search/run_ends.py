"""The digests with which the runs of a search ended, and the statistics of runs with and without probes.

Probes are the calls that a trace inserts into the framework to digest values; at level "none" there are none.
"""

import collections

from ..schema.format import trace_files
from ..schema.reader import Reader

MIN_ROUNDS = 5     # a round is a run without probes and a run with them; a second series has as many
MAX_ERROR_PROBABILITY = 0.025  # of the statement that probes hide a difference, in each of the two tests


class RunEnds(object):
    """Digests of final weights, in the order of the runs."""

    def __init__(self):
        self._runs = []  # (level, digest)

    def add(self, level, digest):
        self._runs.append((level, digest))

    def __len__(self):
        return len(self._runs)

    def distinct(self, traced):
        """Return the distinct digests of the runs with probes, or of those without."""
        return set(self._digests(traced))

    def _digests(self, traced):
        """Return the digests of the runs with probes, or of those without."""
        return [digest for level, digest in self._runs if (level != "none") == traced]

    def only_first_differs(self):
        """Return whether all runs but the first ended alike, and the first did not."""
        digests = [digest for _, digest in self._runs]
        return len(digests) > 2 and digests[0] != digests[1] and len(set(digests[1:])) == 1

    def describe(self):
        """Return a text such as "1 of 4 untraced runs ended otherwise than most, 0 of 10 traced ones did".

        Where no end is that of most runs, it is "4 untraced runs ended in 3 ways, 10 traced ones in 9".
        """
        most, number = collections.Counter(digest for _, digest in self._runs).most_common(1)[0]
        if 2 * number <= len(self._runs):
            untraced, traced = (self._digests(traced) for traced in (False, True))
            return "{} untraced runs ended in {} ways, {} traced ones in {}".format(
                len(untraced), len(set(untraced)), len(traced), len(set(traced)))
        counts = []
        for traced in (False, True):
            digests = self._digests(traced)
            counts += [sum(digest != most for digest in digests), len(digests)]
        return "{} of {} untraced runs ended otherwise than most, {} of {} traced ones did".format(*counts)


class Rounds(object):
    """Alternating runs without probes and with probes at every op, to test whether probes hide a difference."""

    def __init__(self):
        self.untraced, self.traced = [], []

    def add(self, untraced, traced):
        self.untraced.append(untraced)
        self.traced.append(traced)

    @property
    def differing_count(self):
        """The number of runs without probes that ended unlike all runs with them."""
        return sum(digest not in self.traced for digest in self.untraced)

    def is_significant(self):
        """Return whether all differing runs are among those without probes, and seldom are by chance."""
        if None in self.untraced + self.traced or len(set(self.traced)) > 1:
            return False
        return self._probability() <= MAX_ERROR_PROBABILITY

    def is_hopeless(self):
        """Return whether twice as many rounds could not be significant."""
        return None in self.untraced + self.traced or len(set(self.traced)) > 1

    def describe(self):
        return ("in turns, {} of {} untraced runs ended otherwise than those with probes at every op, 0 of {} of these "
                "did: as good as that by chance in {:.1%} at most").format(
                    self.differing_count, len(self.untraced), len(self.traced), self._probability())

    def _probability(self):
        """Return the probability that so many of all runs are untraced ones by chance (Fisher's exact test)."""
        untraced_count, total, probability = len(self.untraced), len(self.untraced) + len(self.traced), 1.0
        for number in range(self.differing_count):
            probability *= (untraced_count - number) / float(total - number)
        return probability


def digest_of_weights(folder):
    """Return the digests of the final weights of all processes as one text; None without weights."""
    return " ".join(digests_of_weights(folder)) or None


def digests_of_weights(folder):
    """Return the sorted digests of the final weights of the processes that have any.

    They are sorted because which process did which work may be chance.
    """
    return sorted(end["weights"] for end in ends_of(folder) if end.get("weights"))


def ends_of(folder):
    """Return the last block of each process's trace, {} for one that was cut off."""
    return [_end_of(path) or {} for path in trace_files(folder).values()]


def has_framework(folder):
    """Return whether a process of the run imported a framework whose ops can be recorded."""
    for path in trace_files(folder).values():
        reader = Reader(path)
        reader.close()
        if reader.header.get("framework"):
            return True
    return False


def _end_of(path):
    reader = Reader(path)
    try:
        return next((value for kind, value in reader if kind == "end"), None)
    finally:
        reader.close()
