"""The digests of arrays that NumPy read from files, by which values from Python are traced back to a file."""

import numpy

from ...wrap import Wrappers
from . import digest

_MOST = 1024            # maximum number of arrays
_LARGEST = 64 << 20     # maximum size of an array, in bytes
_READERS = ("load", "fromfile", "loadtxt", "genfromtxt")


class LoadedArrays(object):
    """The wrappers around NumPy's functions that read files.

    digests: of the arrays that they returned, each with its dtype named as by NumPy and as by PyTorch.
    """

    def __init__(self):
        self.digests = set()
        self._wrappers = Wrappers()

    def open(self):
        for name in _READERS:
            self._wrappers.wrap(numpy, name, self._read)
        self._wrappers.wrap(numpy.lib.npyio.NpzFile, "__getitem__", self._read)

    def close(self):
        self._wrappers.undo()

    def _read(self, original, *args, **kwargs):
        result = original(*args, **kwargs)
        if isinstance(result, numpy.ndarray) and not isinstance(result, numpy.memmap) and len(self.digests) < _MOST \
                and result.nbytes <= _LARGEST and result.dtype.kind in "biufc":
            array = numpy.ascontiguousarray(result)
            self.digests.add(digest.digest_array(array))
            self.digests.add(digest.digest_bytes(array.reshape(-1).view(numpy.uint8), array.dtype.name))
        return result
