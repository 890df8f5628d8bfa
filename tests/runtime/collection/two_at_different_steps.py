"""Noise from Python from step 2 on, the clock from step 5 on: the first is to be named.

form: two culprits
expect: op=PyFunc | class=Python feed | step=2
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()
first = tf.Variable(tf.ones([8, 4]))
second = tf.Variable(tf.ones([8, 4]))


def noise(x, step):
    return x + (generator.standard_normal(x.shape).astype(np.float32) if step >= 2 else 0)


@tf.function
def train(x, step):
    noisy = tf.numpy_function(noise, [x, step], tf.float32)  # <- culprit
    noisy.set_shape([16, 8])
    now = tf.cast(tf.math.mod(tf.timestamp(), 1.0), tf.float32)
    drift = tf.where(step >= 5, now, 0.0)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(noisy, first) - 1.0))
        other = tf.reduce_mean(tf.square(tf.matmul(x + drift, second) - 1.0))
    first.assign_sub(0.1 * tape.gradient(loss, first))
    second.assign_sub(0.1 * tape.gradient(other, second))
    return loss


for step in range(8):
    loss = train(tf.ones([16, 8]), tf.constant(step))
print(float(loss))
