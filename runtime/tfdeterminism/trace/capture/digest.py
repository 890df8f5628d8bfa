"""A digest of 64 bits of a value's bytes: every position counts, no order of summation does.

-0.0 is not 0.0, NaN payloads count, and so does the length. Values of one type and probe are
compared only with each other, so that it does not matter that the probes differ in how they hash.
"""

import hashlib
import struct
import zlib

import numpy

SMALL = 8192  # bytes; above, TensorFlow's own Fingerprint is faster than hashlib
# Of the weights of bytes, as signed integers of 64 bits.
FIRST_FACTOR = 0x9e3779b97f4a7c15 - (1 << 64)
SECOND_FACTOR = 0xbf58476d1ce4e5b9 - (1 << 64)


def of_bytes(data):
    """data: bytes or a contiguous array of plain type."""
    return struct.unpack("<Q", hashlib.sha1(data).digest()[:8])[0]


def of_array(array):
    """array: NumPy, of any type; strings are hashed with their lengths."""
    array = numpy.asarray(array)
    if array.dtype.kind in "OUS":
        parts = hashlib.sha1()
        for item in array.reshape(-1).tolist():
            text = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
            parts.update(struct.pack("<Q", len(text)) + text)
        return struct.unpack("<Q", parts.digest()[:8])[0]
    return of_bytes(array.tobytes() if array.nbytes < SMALL else
                    numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8))


def of_shape(shape):
    """CRC-32 of a shape (sequence of integers), never 0; 0 stands for unknown (None)."""
    if shape is None:
        return 0
    return zlib.crc32(",".join(str(size) for size in shape).encode("ascii") + b";") & 0xffffffff or 1


def of_parts(parts):
    """One digest, as 16 hex digits, of {name: digest}."""
    text = "".join("{}={:016x};".format(name, parts[name]) for name in sorted(parts))
    return "{:016x}".format(of_bytes(text.encode("utf-8")))


def weighted_sum(array):
    """What the sum in a graph computes, in NumPy: for tests. array: any plain type."""
    data = numpy.frombuffer(numpy.ascontiguousarray(array).tobytes(), numpy.uint8).astype(numpy.int64)
    with numpy.errstate(over="ignore"):
        total = ((data + 1) * _weights_numpy(data.size)).sum(dtype=numpy.int64)
        return int(total) & 0xffffffffffffffff


def _weights_numpy(count):
    with numpy.errstate(over="ignore"):
        mixed = (numpy.arange(count, dtype=numpy.int64) + 1) * numpy.int64(FIRST_FACTOR)
        mixed ^= mixed >> 29
        mixed *= numpy.int64(SECOND_FACTOR)
        mixed ^= mixed >> 32
        return mixed | 1
