"""Random inputs for the cases, and the functions that build cases."""

import numpy as np

# Modes of a case: eager, or in a graph that knows the shape (static), the number of dimensions (dims), nothing (rank).
FLOATS = ("float16", "float32", "float64")
# Graphs of known shapes, of known ranks only, of nothing known: sessions cost time, so each op has a few such cases.
EAGER = ("eager",)
STATIC = ("eager", "static")
DIMS = ("eager", "static", "dims")
ALL = ("eager", "static", "dims", "rank")


class Maker:
    """Makes random arrays, equal in every run, and cases of them; case: the class math_checks.Case."""

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
