"""tf.py_function around code that draws without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: py_function
expect: op=EagerPyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))


def noise(x):
    return x + np.random.standard_normal([16, 8]).astype(np.float32)


@tf.function
def train(x):
    noisy = tf.py_function(noise, [x], tf.float32)  # <- culprit
    noisy.set_shape([16, 8])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(noisy, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train(tf.ones([16, 8]))
print(float(loss))
