"""The culprit runs in the function of a map_fn.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([4]))
inputs = tf.constant(np.arange(24, dtype=np.float32).reshape(6, 4) / 16)


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


@tf.function
def train_step(x):
    def one(row):
        noisy = tf.numpy_function(noise, [row * 2.0], tf.float32)  # <- culprit
        noisy.set_shape([4])
        return noisy * weights

    state = tf.map_fn(one, x)
    weights.assign_add(0.01 * tf.reduce_mean(state, 0))
    return tf.reduce_sum(state)


for step in range(3):
    total = train_step(inputs)
print("total", float(total))
