"""Functions of Python that graphs call: with a gradient, in turns that overlap, in an input pipeline, eagerly.

expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState(1)
weights = tf.Variable(tf.ones([8, 4]))
scale = tf.Variable(tf.ones([8]))


def noisy(x):
    scale.assign(0.5 * scale + generator.standard_normal([8]).astype(np.float32))
    return x * scale + tf.constant(x.numpy())


def doubled(row):
    return tf.constant(row.numpy()) * 2.0 + row


@tf.function
def train(x):
    x = tf.reshape(tf.py_function(noisy, [x * weights[0, 0]], tf.float32), [16, 8])
    x = tf.map_fn(lambda row: tf.py_function(doubled, [row], tf.float32), x)
    with tf.GradientTape() as tape:
        raised = tf.py_function(lambda one: one ** 2.0, [tf.matmul(tf.reshape(x, [16, 8]), weights)], tf.float32)
        loss = tf.reduce_mean(raised)
    weights.assign_sub(1e-6 * tape.gradient(loss, weights))
    return loss


data = tf.data.Dataset.range(64).map(lambda n: tf.py_function(doubled, [tf.cast(n, tf.float32)], tf.float32), 4)
for batch in data.batch(16).prefetch(2):
    given = tf.py_function(doubled, [tf.reshape(batch, [16, 1])], tf.float32)
    train(given * tf.ones([16, 8]))
