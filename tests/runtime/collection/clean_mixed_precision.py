"""Half precision, seeded.

This program tests `tfdet locate`, which must find no difference.
form: mixed precision
expect: same
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 64]))


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        hidden = tf.matmul(tf.cast(x, tf.float16), tf.cast(weights, tf.float16))
        hidden = tf.nn.dropout(hidden, rate=0.5, seed=1)
        loss = tf.reduce_mean(tf.square(tf.cast(hidden, tf.float32)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(tf.ones([16, 8]))
print(float(loss))
