"""Weights are saved and restored; afterwards the data are noise.

form: saved and restored
expect: op=* | class=Python feed
"""
import os
import tempfile

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
checkpoint = tf.train.Checkpoint(weights=weights)


def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))  # <- culprit
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    train(np.ones([16, 8], np.float32))
path = checkpoint.save(os.path.join(tempfile.mkdtemp(), "model"))
weights.assign(tf.zeros([8, 4]))
checkpoint.restore(path)
for step in range(3):
    loss = train(np.random.standard_normal([16, 8]).astype(np.float32))
print(float(loss))
