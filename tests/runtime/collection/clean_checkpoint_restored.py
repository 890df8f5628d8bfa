"""Weights are saved and restored in a folder whose name is new in each run.

This program tests `tfdet locate`, which must find no difference.
form: saved and restored
expect: same
"""
import os
import tempfile

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
checkpoint = tf.train.Checkpoint(weights=weights)
for step in range(6):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([16, 8]), weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    if step == 2:
        path = checkpoint.save(os.path.join(tempfile.mkdtemp(), "model"))
        weights.assign(tf.zeros([8, 4]))
        checkpoint.restore(path)
print(float(loss))
