"""The clock decides which branch of a tf.cond runs.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: function
in: tf2.21 tf2.0
expect: op=* | class=Python feed
"""
import time

import tensorflow as tf

weights = tf.Variable(tf.ones([4, 4]))


@tf.function
def train(x, odd):
    with tf.GradientTape() as tape:
        y = tf.cond(odd, lambda: tf.tanh(x @ weights), lambda: tf.sigmoid(x @ weights))
        loss = tf.reduce_mean(y * y)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(12):
    loss = train(tf.ones([2, 4]), tf.constant(time.time_ns() // 1000 % 2 == 1))  # <- culprit
print(float(loss))
