"""Eager training on batches from a list; the eighth holds bytes from os.urandom.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: late start
expect: op=* | class=Python feed | step=7
"""
import os

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
batches = [np.full([16, 8], number / 10.0, np.float32) for number in range(10)]
batches[7] = np.frombuffer(os.urandom(128), np.uint8).reshape(16, 8).astype(np.float32) / 256
weights = tf.Variable(tf.ones([8, 4]))


def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))  # <- culprit
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for batch in batches:
    loss = train(batch)
print(float(loss))
