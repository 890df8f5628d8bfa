"""What agreeing runs show: how probable it is that they agree by chance.

An end is what a run ends with, such as a digest of its final weights; runs agree if their ends are equal.
"""

import collections
import math

RISK = 0.05  # accepted probability of what is said wrongly by chance


def runs_that_seldom_agree(ends):
    """Return how many runs seldom agree by chance if they differ as often as runs with these ends."""
    pairs = [(a, b) for index, a in enumerate(ends) for b in ends[index + 1 :]]
    agreement = (sum(a == b for a, b in pairs) + 1.0) / (len(pairs) + 2.0)
    return 1 + max(2, int(math.ceil(math.log(RISK) / math.log(agreement))))


def unseen_share(runs):
    """Return the share of runs that something else may change although so many runs agree.

    If it changes a larger share, so many runs agree with a probability of at most RISK.
    """
    return 1 - RISK ** (1.0 / runs)


def most_frequent(ends):
    """Return how many of these ends are equal, at most."""
    return max(collections.Counter(ends).values())


def share(ends):
    """Return which share of runs ends as the most frequent of these do (the rule of succession)."""
    return (most_frequent(ends) + 1.0) / (len(ends) + 2.0)


def probability(without, pinned):
    """Return the probability that as many pinned runs agree if the pins change nothing (Fisher's exact test).

    without, pinned: ends of runs without the pins and with them.
    """
    drawn, agreeing = len(pinned), most_frequent(pinned)
    total = len(without) + drawn
    return sum(
        _combinations(count, equal) * _combinations(total - count, drawn - equal) / _combinations(total, drawn)
        for count in collections.Counter(without + pinned).values()
        for equal in range(agreeing, min(count, drawn) + 1)
    )


def _combinations(items, chosen):
    if chosen > items:
        return 0
    return math.factorial(items) // (math.factorial(chosen) * math.factorial(items - chosen))
