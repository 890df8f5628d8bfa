"""Arrays that NumPy has read from files: a value from Python that is one of them comes from there."""

import numpy

from ...wrap import Wrappers
from . import digest

_MOST = 1024            # arrays that are known
_LARGEST = 64 << 20     # bytes of one
_READERS = ("load", "fromfile", "loadtxt", "genfromtxt")


class LoadedArrays(object):
    """Wraps the functions that read. known: digests of what they have given, its types named as NumPy does and as
    PyTorch does."""

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
        found = original(*args, **kwargs)
        if isinstance(found, numpy.ndarray) and not isinstance(found, numpy.memmap) and len(self.digests) < _MOST \
                and found.nbytes <= _LARGEST and found.dtype.kind in "biufc":
            plain = numpy.ascontiguousarray(found)
            self.digests.add(digest.digest_array(plain))
            self.digests.add(digest.digest_bytes(plain.reshape(-1).view(numpy.uint8), plain.dtype.name))
        return found
