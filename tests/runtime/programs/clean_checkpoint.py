"""Checkpoints and a folder under names that are drawn at random: no number of the training comes from them.

expect: same
"""
import os
import tempfile

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
folder = tempfile.mkdtemp()
weights = tf.Variable(tf.ones([4]), name="weights")
checkpoint = tf.train.Checkpoint(weights=weights)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((weights * x - 1.0) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train_step(tf.ones([4]))
    manager.save()
checkpoint.restore(manager.latest_checkpoint)
tf.io.write_file(tf.strings.join([folder, "loss.txt"], os.sep), tf.strings.as_string(loss))
print("loss", float(train_step(tf.ones([4]))))
