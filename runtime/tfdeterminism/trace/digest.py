"""A digest of 64 bits of a value's bytes: every position counts, no order of summation does.

-0.0 is not 0.0, NaN payloads count, and so does the length. Values of one type and probe are
compared only with each other, so that it does not matter that the probes differ in how they hash.
"""

import hashlib
import struct
import zlib

import numpy

SMALL = 8192  # bytes; above, TensorFlow's own Fingerprint is faster than hashlib
_ODD = 0x9e3779b97f4a7c15


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
    """What ``in_graph`` computes without Fingerprint, in NumPy: for tests. array: any plain type."""
    data = numpy.frombuffer(numpy.ascontiguousarray(array).tobytes(), numpy.uint8).astype(numpy.int64)
    with numpy.errstate(over="ignore"):
        total = ((data + 1) * _weights_numpy(data.size)).sum(dtype=numpy.int64)
        return int(total) & 0xffffffffffffffff


def _weights_numpy(count):
    with numpy.errstate(over="ignore"):
        mixed = (numpy.arange(count, dtype=numpy.int64) + 1) * numpy.int64(_signed(_ODD))
        mixed ^= mixed >> 29
        mixed *= numpy.int64(_signed(0xbf58476d1ce4e5b9))
        mixed ^= mixed >> 32
        return mixed | 1


def _signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fingerprint_of(tf, tensor):
    """uint8 [1, 8]: farmhash64 of a tensor's bytes, a CPU kernel."""
    return tf.gen_array_ops.fingerprint(tf.array_ops.expand_dims(tensor, 0), method="farmhash64")


def sum_of(tf, tensor):
    """uint8 [1, 8]: the sum of byte_i · weight_i mod 2^64; integers, so any order gives the same, on any device."""
    array_ops, math_ops = tf.array_ops, tf.math_ops
    if tensor.dtype == tf.dtypes.bool:
        tensor = math_ops.cast(tensor, tf.dtypes.uint8)
    data = array_ops.reshape(array_ops.bitcast(tensor, tf.dtypes.uint8), [-1])
    data = math_ops.cast(data, tf.dtypes.int64) + 1
    mixed = (math_ops.range(array_ops.size(data, out_type=tf.dtypes.int64)) + 1) * _signed(_ODD)
    mixed = _shifted(tf, mixed, 29) * _signed(0xbf58476d1ce4e5b9)
    weights = tf.bitwise_ops.bitwise_or(_shifted(tf, mixed, 32), tf.constant(1, tf.dtypes.int64))
    total = math_ops.reduce_sum(data * weights)
    return array_ops.expand_dims(array_ops.bitcast(total, tf.dtypes.uint8), 0)


def _shifted(tf, value, bits):
    return tf.bitwise_ops.bitwise_xor(value, tf.bitwise_ops.right_shift(value, tf.constant(bits, tf.dtypes.int64)))
