"""Digests that a graph computes itself."""

from ..digest import FIRST_FACTOR, SECOND_FACTOR
from . import internals as tf


def fingerprint(tensor):
    """Return uint8 [1, 8]: farmhash64 of a tensor's bytes, computed on the CPU."""
    return fingerprints([tensor])


def fingerprints(tensors):
    """Return uint8 [n, 8]: the fingerprints of n tensors of one type and shape."""
    rows = tf.gen_array_ops.pack(tensors) if len(tensors) > 1 else tf.array_ops.expand_dims(tensors[0], 0)
    return tf.gen_array_ops.fingerprint(rows, method="farmhash64")


def weighted_sum(tensor):
    """Return uint8 [1, 8]: the sum of byte_i · weight_i mod 2^64, which no order of summation changes."""
    array_ops, math_ops = tf.array_ops, tf.math_ops
    if tensor.dtype == tf.dtypes.bool:
        tensor = math_ops.cast(tensor, tf.dtypes.uint8)
    data = array_ops.reshape(array_ops.bitcast(tensor, tf.dtypes.uint8), [-1])
    data = math_ops.cast(data, tf.dtypes.int64) + 1
    mixed = (math_ops.range(array_ops.size(data, out_type=tf.dtypes.int64)) + 1) * FIRST_FACTOR
    mixed = _xor_shift(mixed, 29) * SECOND_FACTOR
    weights = tf.bitwise_ops.bitwise_or(_xor_shift(mixed, 32), tf.constant(1, tf.dtypes.int64))
    total = math_ops.reduce_sum(data * weights)
    return array_ops.expand_dims(array_ops.bitcast(total, tf.dtypes.uint8), 0)


def _xor_shift(value, bits):
    return tf.bitwise_ops.bitwise_xor(value, tf.bitwise_ops.right_shift(value, tf.constant(bits, tf.dtypes.int64)))
