"""A parallel map_fn without anything random, and its gradient.

This program tests `tfdet locate`, which must find no difference.
form: while and map_fn
expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 8]))
rows = tf.constant(np.random.RandomState(1).standard_normal([32, 8, 8]).astype(np.float32))


@tf.function
def train(rows):
    def one(row):
        return tf.reduce_mean(tf.tanh(tf.matmul(row, weights)))

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.map_fn(one, rows, parallel_iterations=8) - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(rows)
print(float(loss))
