"""A variable that eager code writes in a tf.py_function, from NumPy, and that the graph reads.

expect: op=Python | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))
scale = tf.Variable(tf.ones([8]))


def disturb():
    scale.assign(np.random.standard_normal([8]).astype(np.float32))  # <- culprit


@tf.function
def train(x):
    tf.py_function(disturb, [], [])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x * scale, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    train(tf.ones([16, 8]))
