"""Half precision with a scaled loss; dropout has no seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: mixed precision
expect: op=RandomUniform | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 64]))


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        hidden = tf.matmul(tf.cast(x, tf.float16), tf.cast(weights, tf.float16))
        hidden = tf.nn.dropout(hidden, rate=0.5)  # <- culprit
        loss = tf.reduce_mean(tf.square(tf.cast(hidden, tf.float32)))
        scaled = loss * 128.0
    weights.assign_sub(0.1 / 128 * tape.gradient(scaled, weights))
    return loss


for step in range(3):
    loss = train(tf.ones([16, 8]))
print(float(loss))
