"""What tf.data calls keeps a mean of its noise in a variable that nothing reads: no op that is recorded shows it.

This program tests `tfdet locate`, which must report a difference that no recorded op shows.
form: tf.data
in: tf2.21 tf2.0
expect: hidden
"""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
generator = np.random.RandomState()
weights = tf.Variable(tf.ones([8, 4]))
level = tf.Variable(0.0, name="level")


def measured(x):
    level.assign(0.9 * level + 0.1 * generator.standard_normal())
    return x


def batch(number):
    x = tf.py_function(measured, [tf.ones([16, 8]) * tf.cast(number, tf.float32)], tf.float32)
    return tf.ensure_shape(x, [16, 8])


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for x in tf.data.Dataset.range(4).map(batch):
    train(x)
print(float(level.numpy()))
