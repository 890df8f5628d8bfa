"""A table from NumPy's unseeded generator becomes a constant of the function.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: function
expect: op=Const | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
table = np.random.standard_normal([16, 8]).astype(np.float32)


@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(table, weights) - 1.0))  # <- culprit
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train()
print(float(loss))
