"""Does the order of hashes decide it? Only where runs with one seed of hashes agree, and with two seeds differ."""

VARIABLE = "PYTHONHASHSEED"
_FIRST, _OTHERS = "0", ("1", "2", "3", "4", "5")  # two seeds may give a small set one order
_AGAIN = 2  # more runs with each of the two seeds: one in two that differs by chance agrees so in 1 of 32


class HashSeedTrial(object):
    """record(seed): records a run, its folder; apart(folders): do these two runs differ at the culprit?"""

    def __init__(self, record, apart):
        self._record, self._apart = record, apart
        self.same_seed_runs = []  # two runs with one seed
        self.decides = False

    def run(self):
        """What was seen, in words; `decides` tells whether the order of hashes does."""
        self.same_seed_runs = [self._record(_FIRST), self._record(_FIRST)]
        if self._apart(self.same_seed_runs):
            return "with {}={} two runs still differ there: the order of hashes alone does not decide it".format(
                VARIABLE, _FIRST)
        for seed in _OTHERS:
            folder = self._record(seed)
            if self._apart([self.same_seed_runs[0], folder]):
                return self._again(seed, folder)
        return "with {}={} to {} the runs agree there: that the order of hashes decides it was not seen".format(
            VARIABLE, _FIRST, _OTHERS[-1])

    def _again(self, seed, folder):
        """Is it so each time? In no order that a state which each run leaves to the next could follow."""
        agree = True
        for number in range(_AGAIN):
            for one in (_FIRST, seed) if number % 2 == 0 else (seed, _FIRST):
                like, unlike = (self.same_seed_runs[0], folder) if one == _FIRST else (folder, self.same_seed_runs[0])
                run = self._record(one)
                agree = agree and not self._apart([like, run]) and self._apart([unlike, run])
        self.decides = agree
        if not agree:
            return "runs with one {} agree there now and then: the order of hashes does not decide it".format(VARIABLE)
        return ("with {0}={1} the runs are the same there ({3} of {3}), with {2} too ({4} of {4}), and the ones differ "
                "from the others: the order of a set, or a hash, decides").format(
                    VARIABLE, _FIRST, seed, 2 + _AGAIN, 1 + _AGAIN)
