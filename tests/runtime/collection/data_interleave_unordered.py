"""Files are read side by side, and whichever is ready comes first.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: tf.data
in: tf2.21
expect: op=IteratorGetNext | class=input pipeline
"""
import os
import time

import numpy as np
import tensorflow as tf

weights = tf.Variable(tf.ones([4]))


def wait(number):
    time.sleep(os.urandom(1)[0] / 1e4)
    return np.float32(number)


def read(number):
    rows = tf.data.Dataset.range(4)
    return rows.map(lambda row: tf.ones([4]) * tf.numpy_function(wait, [number * 4 + row], tf.float32) / 16.0)


data = tf.data.Dataset.range(8)
data = data.interleave(read, cycle_length=4, num_parallel_calls=4, deterministic=False)  # <- culprit
for x in data.batch(4):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x * weights - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
