"""Features, labels and sample weights as NumPy arrays; the weights of the samples are drawn anew.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: several feeds
expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
known = np.random.RandomState(1)
unknown = np.random.RandomState()
weights = tf.Variable(tf.ones([8, 1]))


@tf.function
def train(x, y, importance):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(importance * tf.square(tf.matmul(x, weights) - y))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    x = known.standard_normal([16, 8]).astype(np.float32)
    y = known.standard_normal([16, 1]).astype(np.float32)
    importance = unknown.uniform(size=[16, 1]).astype(np.float32)
    loss = train(tf.constant(x), tf.constant(y), tf.constant(importance))  # <- culprit
print(float(loss))
