"""Two culprits that know nothing of each other.

expect: op=PyFunc | class=Python feed
expect: op=Timestamp | class=seed or state | source=timestamp
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
first = tf.Variable(tf.ones([8, 4]))
second = tf.Variable(tf.ones([8, 4]))
inputs = tf.constant(np.arange(32, dtype=np.float32).reshape(4, 8) / 32)


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


@tf.function
def train_step(x):
    noisy = tf.numpy_function(noise, [tf.matmul(x, first)], tf.float32)  # <- culprit
    noisy.set_shape([4, 4])
    first.assign_add(0.01 * tf.matmul(x, noisy, transpose_a=True))
    now = tf.timestamp()  # <- culprit
    drift = tf.cast(tf.math.mod(now, 1.0), tf.float32)
    second.assign_add(drift * tf.matmul(x, tf.matmul(x, second), transpose_a=True))
    return tf.reduce_sum(first) + tf.reduce_sum(second)


for step in range(3):
    total = train_step(inputs)
print("total", float(total))
