"""A custom gradient adds noise that nobody seeded.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: function
in: tf2.21 tf2.0
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

weights = tf.Variable(tf.fill([6, 3], 0.2))


@tf.custom_gradient
def clipped(x):
    def grad(upstream):
        noise = tf.random.normal(tf.shape(x), stddev=0.01)  # <- culprit
        return upstream * tf.cast(tf.abs(x) < 1.0, tf.float32) + noise

    return tf.clip_by_value(x, -1.0, 1.0), grad


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        hidden = clipped(tf.matmul(x, weights))
        loss = tf.reduce_sum(tf.square(hidden - 0.4))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(tf.ones([5, 6]) * 0.1 * (step + 1))
print(float(loss))
