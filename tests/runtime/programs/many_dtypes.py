"""Half, bfloat16, bool, strings, empty and scalar tensors all agree; one bool does not.

expect: op=PyFunc | class=Python feed
"""
import os

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
coin = np.unpackbits(np.frombuffer(os.urandom(8), np.uint8)).astype(bool)
weights = tf.Variable(tf.ones([8, 8]))
inputs = tf.constant(np.arange(64, dtype=np.float32).reshape(8, 8) / 64)


@tf.function
def train_step(x):
    half = tf.cast(tf.cast(x, tf.float16) * 2, tf.float32)
    brain = tf.cast(tf.cast(x, tf.bfloat16) + 1, tf.float32)
    empty = tf.reduce_sum(x[:0] * 2.0)
    double = tf.cast(tf.cast(x, tf.float64) / 3.0, tf.float32)
    words = tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)
    whole = tf.cast(tf.bitwise.bitwise_xor(tf.cast(x * 64, tf.uint8), 7), tf.float32)
    wave = tf.math.real(tf.complex(x, x) * tf.complex(x, x))
    flags = tf.numpy_function(lambda: coin, [], tf.bool)  # <- culprit
    flags.set_shape([64])
    chosen = tf.where(tf.reshape(flags, [8, 8]), half, brain)
    state = chosen + empty + double + words + whole + wave
    weights.assign_add(0.01 * tf.matmul(state, weights))
    return tf.reduce_sum(weights)


for step in range(3):
    total = train_step(inputs)
print("total", float(total))
