"""Tensors for the tests of cuDNN's CPU fallbacks, and the comparison of their results."""

import numpy as np
from vendor_library import tolerance

TYPES = ["float32", "float64", "float16"]


def numbers(shape, dtype, seed=0):
    """Return random numbers between -1 and 1, equal in every call with this seed."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def sum_type(dtype):
    """Return the type in which sums of this type are computed."""
    return "float64" if dtype == "float64" else "float32"


class Tensors:
    """Arrays on the device with their descriptors, in one memory layout."""

    def __init__(self, library, dtype, channels_last=False):
        self.library, self.dtype, self.channels_last = library, dtype, channels_last

    def scale(self, value):
        """Return a pointer to a scale factor."""
        return self.library.scalar(value, sum_type(self.dtype))

    def put(self, values, dtype=None):
        """Copy an array to the device; return (descriptor, address)."""
        descriptor = self.library.tensor(values.shape, dtype or self.dtype, self.channels_last)
        return descriptor, self.library.put_tensor(values, self.channels_last)

    def get(self, tensor, shape, dtype=None):
        """Copy a tensor from the device, as doubles."""
        return self.library.get_tensor(tensor[1], shape, dtype or self.dtype, self.channels_last).astype(np.float64)


def assert_close(result, expected, dtype, terms=1):
    """Assert that a result is within the tolerance of its type."""
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() <= tolerance(dtype, terms)
