"""The culprit runs in the taken branch of a cond; the other branch never runs.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([4, 4]))
inputs = tf.constant(np.arange(16, dtype=np.float32).reshape(4, 4) / 16)


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


@tf.function
def train_step(x, step):
    def late():
        noisy = tf.numpy_function(noise, [x], tf.float32)  # <- culprit
        noisy.set_shape([4, 4])
        return noisy * 2.0

    def early():
        return x * 3.0

    state = tf.matmul(tf.cond(step > 1, late, early), weights)
    weights.assign_add(0.01 * state)
    return tf.reduce_sum(state)


for step in range(4):
    total = train_step(inputs, tf.constant(step))
print("total", float(total))
