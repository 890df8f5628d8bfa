"""The test whether the order of hashes decides a difference.

It does if runs with one hash seed agree, and runs with two hash seeds differ.
"""

HASH_SEED_VARIABLE = "PYTHONHASHSEED"
_FIRST, _OTHERS = "0", ("1", "2", "3", "4", "5")  # several, because two seeds may give a small set the same order
_AGAIN = 2  # additional runs with each of the two seeds; chance alone passes 1 of 32 tests


class HashSeedTrial(object):
    """The test of one culprit.

    record(seed): records a run and returns its folder; differ(folders): returns whether two runs differ at the culprit.
    """

    def __init__(self, record, differ):
        self._record, self._differ = record, differ
        self.same_seed_runs = []  # two runs with one seed
        self.decides = False

    def run(self):
        """Return what was observed, in words, and set `decides` to whether the order of hashes decides."""
        self.same_seed_runs = [self._record(_FIRST), self._record(_FIRST)]
        if self._differ(self.same_seed_runs):
            return "with {}={} two runs still differ there: the order of hashes alone does not decide it".format(
                HASH_SEED_VARIABLE, _FIRST)
        for seed in _OTHERS:
            folder = self._record(seed)
            if self._differ([self.same_seed_runs[0], folder]):
                return self._repeat(seed, folder)
        return "with {}={} to {} the runs agree there: that the order of hashes decides it was not seen".format(
            HASH_SEED_VARIABLE, _FIRST, _OTHERS[-1])

    def _repeat(self, seed, folder):
        """Repeat runs with both seeds, and set `decides` to whether the result is the same each time.

        The seeds alternate in an order that no state which runs leave behind could follow.
        """
        agree = True
        for number in range(_AGAIN):
            for next_seed in (_FIRST, seed) if number % 2 == 0 else (seed, _FIRST):
                earlier = self.same_seed_runs[0], folder
                same_seed_run, other_seed_run = earlier if next_seed == _FIRST else earlier[::-1]
                run = self._record(next_seed)
                agree = agree and not self._differ([same_seed_run, run]) and self._differ([other_seed_run, run])
        self.decides = agree
        if not agree:
            return "runs with one {} agree there now and then: the order of hashes does not decide it".format(
                HASH_SEED_VARIABLE)
        return ("with {0}={1} the runs are the same there ({3} of {3}), with {2} too ({4} of {4}), and the ones differ "
                "from the others: the order of a set, or a hash, decides").format(
                    HASH_SEED_VARIABLE, _FIRST, seed, 2 + _AGAIN, 1 + _AGAIN)
