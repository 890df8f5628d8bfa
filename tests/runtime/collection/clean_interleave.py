"""Parallel interleave and map that keep their order, prefetched.

This program tests `tfdet locate`, which must find no difference.
form: tf.data
expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 1]))
rows = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)


def read(number):
    return tf.data.Dataset.from_tensor_slices(rows).skip(number).take(8)


data = tf.data.Dataset.range(8).interleave(read, cycle_length=4, block_length=2, num_parallel_calls=4)
data = data.map(tf.tanh, num_parallel_calls=4).shuffle(32, seed=2).batch(16).prefetch(2)
for x in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
