"""Rows are shuffled in a function, without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: function
expect: op=RandomShuffle | class=seed or state
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 1]))
data = tf.constant(np.arange(256, dtype=np.float32).reshape(32, 8) / 256)


@tf.function
def train():
    rows = tf.random.shuffle(data)[:8]  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(rows, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train()
print(float(loss))
