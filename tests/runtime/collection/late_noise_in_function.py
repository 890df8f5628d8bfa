"""From step 12 on the function is called with noise.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: late start
expect: op=* | class=Python feed | step=12
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
generator = np.random.RandomState()


@tf.function
def train(x, noise):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x + noise, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


x = tf.ones([16, 8])
for step in range(15):
    noise = generator.standard_normal([16, 8]) if step >= 12 else np.zeros([16, 8])
    loss = train(x, tf.constant(noise, tf.float32))  # <- culprit
print(float(loss))
