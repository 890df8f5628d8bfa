"""tf.py_function around seeded NumPy.

This program tests `tfdet locate`, which must find no difference.
form: py_function
expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState(1)
weights = tf.Variable(tf.ones([8, 4]))


def noise(x):
    return x + generator.standard_normal([16, 8]).astype(np.float32)


@tf.function
def train(x):
    noisy = tf.py_function(noise, [x], tf.float32)
    noisy.set_shape([16, 8])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(noisy, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(tf.ones([16, 8]))
print(float(loss))
