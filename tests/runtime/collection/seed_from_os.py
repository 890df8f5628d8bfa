"""tf.random.set_seed is called, with a seed of the operating system's.

form: function
in: tf2.21 tf2.0
expect: op=RandomStandardNormal | class=seed or state
"""
import os

import tensorflow as tf

tf.random.set_seed(int.from_bytes(os.urandom(3), "little"))
weights = tf.Variable(tf.ones([8, 4]))


@tf.function
def train(x):
    noisy = x + tf.random.normal([16, 8])  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(noisy, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    train(tf.ones([16, 8]))
