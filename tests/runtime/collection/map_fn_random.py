"""A parallel map_fn that draws with a seed: which turn gets which number is a race.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: while and map_fn
in: tf2.21 tf2.0
expect: op=RandomUniform/RandomStandardNormal | class=unordered access
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
weights = tf.Variable(tf.ones([64, 64]))
rows = tf.constant(np.random.RandomState(1).standard_normal([64, 64, 64]).astype(np.float32))


@tf.function
def train(rows):
    def one(row):
        noise = tf.random.normal([64, 64], seed=2)  # <- culprit
        return tf.reduce_mean(tf.matmul(row + noise, weights))

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.map_fn(one, rows, parallel_iterations=16) - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(rows)
print(float(loss))
