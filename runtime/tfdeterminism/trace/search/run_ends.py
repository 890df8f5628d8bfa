"""How the runs of a search ended, and what may be said of that: without probes, with them, the first of all."""

import collections

from ..schema.format import trace_files
from ..schema.reader import Reader

MIN_ROUNDS = 5     # of one run without probes and one with them; twice as many where so few do not tell
MAX_ERROR_PROBABILITY = 0.025  # of being wrong, in each of the two looks, when it is said that probes hide a difference


class RunEnds(object):
    """Digests of final weights, in the order of the runs."""

    def __init__(self):
        self._runs = []  # (level, digest)

    def add(self, level, digest):
        self._runs.append((level, digest))

    def __len__(self):
        return len(self._runs)

    def distinct(self, traced):
        """The digests of the runs with probes, or of those without."""
        return {digest for level, digest in self._runs if (level != "none") == traced}

    def only_first_differs(self):
        """Did only the first run end otherwise than all after it?"""
        digests = [digest for _, digest in self._runs]
        return len(digests) > 2 and digests[0] != digests[1] and len(set(digests[1:])) == 1

    def describe(self):
        """"1 of 4 untraced runs ended otherwise than most, 0 of 10 traced ones did"."""
        most = collections.Counter(digest for _, digest in self._runs).most_common(1)[0][0]
        told = []
        for traced in (False, True):
            mine = [digest for level, digest in self._runs if (level != "none") == traced]
            told += [sum(digest != most for digest in mine), len(mine)]
        return "{} of {} untraced runs ended otherwise than most, {} of {} traced ones did".format(*told)


class Rounds(object):
    """Runs without probes and with those at every op in turns: do the ones differ, and the others not?"""

    def __init__(self):
        self.untraced, self.traced = [], []

    def add(self, untraced, traced):
        self.untraced.append(untraced)
        self.traced.append(traced)

    @property
    def differing_count(self):
        """How many runs without probes ended otherwise than those with them."""
        return sum(one not in self.traced for one in self.untraced)

    def is_significant(self):
        """Would it seldom be chance that all runs that differ are among those without probes?"""
        if None in self.untraced + self.traced or len(set(self.traced)) > 1:
            return False
        return self._chance() <= MAX_ERROR_PROBABILITY

    def is_hopeless(self):
        """Can twice as many rounds not show it any more?"""
        return None in self.untraced + self.traced or len(set(self.traced)) > 1

    def describe(self):
        return ("in turns, {} of {} untraced runs ended otherwise than those with probes at every op, 0 of {} of these "
                "did: as good as that by chance in {:.1%} at most").format(
                    self.differing_count, len(self.untraced), len(self.traced), self._chance())

    def _chance(self):
        """That so many runs, dealt out by chance, all fall among the untraced ones: Fisher's exact test."""
        mine, every, chance = len(self.untraced), len(self.untraced) + len(self.traced), 1.0
        for number in range(self.differing_count):
            chance *= (mine - number) / float(every - number)
        return chance


def digest_of_weights(folder):
    """Of the final weights that the traces of a run tell, as one text; None for a program without."""
    return " ".join(digests_of_weights(folder)) or None


def digests_of_weights(folder):
    """Of the final weights of each process that has any; which of several did what may be chance."""
    found = [_end_of(path) or {} for path in trace_files(folder).values()]
    return sorted(end["weights"] for end in found if end.get("weights"))


def _end_of(path):
    reader = Reader(path)
    try:
        return next((value for kind, value in reader if kind == "end"), None)
    finally:
        reader.close()
