"""Tensors of cuDNN's stand-ins, and how near to the truth they have to come."""

import numpy as np
from closed_library import tolerance

TYPES = ["float32", "float64", "float16"]


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def sums(dtype):
    return "float64" if dtype == "float64" else "float32"


class Tensors:
    """Arrays on the device under their descriptors, in one layout."""

    def __init__(self, library, dtype, last=False):
        self.library, self.dtype, self.last = library, dtype, last

    def scale(self, value):
        return self.library.scalar(value, sums(self.dtype))

    def put(self, values, dtype=None):
        """Descriptor and address."""
        made = self.library.tensor(values.shape, dtype or self.dtype, self.last)
        return made, self.library.put_tensor(values, self.last)

    def get(self, put, shape, dtype=None):
        return self.library.get_tensor(put[1], shape, dtype or self.dtype, self.last).astype(np.float64)


def close(found, wanted, dtype, terms=1):
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tolerance(dtype, terms)
