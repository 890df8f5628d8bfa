"""The same rows in another order: a sum or an exclusive or over the tensor would not see it.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([4, 4]))
inputs = tf.constant(np.arange(256, dtype=np.float32).reshape(64, 4) / 256)


def shuffle(x):
    return x[generator.permutation(len(x))]


@tf.function
def train_step(x):
    rows = tf.numpy_function(shuffle, [tf.matmul(x, weights)], tf.float32)  # <- culprit
    rows.set_shape([64, 4])
    weights.assign_add(0.01 * tf.matmul(x, rows, transpose_a=True))
    return tf.reduce_sum(weights)


for step in range(3):
    total = train_step(inputs)
print("total", float(total))
