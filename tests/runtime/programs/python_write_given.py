"""A variable that eager code writes in a tf.py_function, from what the graph hands to it, and that the graph reads.

expect: op=RandomStandardNormal | class=seed or state | source=random-op-without-seed
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))
scale = tf.Variable(tf.ones([8]))


def keep(row):
    scale.assign(2.0 * tf.constant(row.numpy()))
    return tf.ones([16, 8])


@tf.function
def train():
    row = tf.random.normal([8])  # <- culprit
    x = tf.py_function(keep, [row], tf.float32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.reshape(x, [16, 8]) * scale, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    train()
