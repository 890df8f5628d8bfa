"""Noise from NumPy, inside a tf.numpy_function of a training step.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([8, 4]))
inputs = tf.constant(np.arange(32, dtype=np.float32).reshape(4, 8) / 32)


def noise(x):
    return (x + 1e-3 * generator.standard_normal(x.shape)).astype(np.float32)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        hidden = tf.tanh(tf.matmul(x, weights))
        noisy = tf.numpy_function(noise, [tf.stop_gradient(hidden)], tf.float32)  # <- culprit
        loss = tf.reduce_mean(tf.square(hidden * noisy - 1.0))
    gradient = tape.gradient(loss, weights)
    weights.assign_sub(0.1 * gradient)
    return loss


for step in range(4):
    loss = train_step(inputs)
print("loss", float(loss))
