"""Dropout with seeds, in a function.

This program tests `tfdet locate`, which must find no difference.
form: function
expect: same
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 64]))


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        hidden = tf.nn.dropout(tf.matmul(x, weights), rate=0.5, seed=3)
        loss = tf.reduce_mean(tf.square(hidden - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(5):
    loss = train(tf.ones([16, 8]))
print(float(loss))
