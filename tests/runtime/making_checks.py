"""Random inputs for the cases of math_checks.py, which compare a replaced op with its original, in several modes."""

import numpy as np

FLOATS = ("float16", "float32", "float64")
# Modes of a case: eager, or in a graph that knows the shape (static), the number of dimensions (dims), nothing (rank).
# Sessions cost time, so each op has few cases in graphs.
EAGER = ("eager",)
STATIC = ("eager", "static")
DIMS = ("eager", "static", "dims")
ALL = ("eager", "static", "dims", "rank")


class Maker:
    """Makes random arrays, equal in every run, and cases of them; case: the class of these."""

    def __init__(self, case):
        self.case = case
        self._random = np.random.RandomState(11)

    def real(self, shape, dtype="float32", low=-1.0, high=1.0):
        """Return uniform random numbers."""
        values = self._random.uniform(low, high, shape)
        if dtype.startswith("complex"):
            values = values + 1j * self._random.uniform(low, high, shape)
        return np.asarray(values).astype(dtype)

    def ints(self, low, high, shape, dtype="int32"):
        """Return random integers from low to high - 1."""
        if low == high:
            return np.zeros(shape, dtype)
        return self._random.randint(low, high, shape).astype(dtype)
