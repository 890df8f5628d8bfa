"""The first seven steps agree: the culprit strikes at step 7 (the first is 0).

expect: op=PyFunc | class=Python feed | step=7
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([8, 4]))
inputs = tf.constant(np.arange(32, dtype=np.float32).reshape(4, 8) / 32)


def noise(x, step):
    return (x + (generator.standard_normal(x.shape) if step == 7 else 0)).astype(np.float32)


@tf.function
def train_step(x, step):
    with tf.GradientTape() as tape:
        hidden = tf.matmul(x, weights)
        noisy = tf.numpy_function(noise, [tf.stop_gradient(hidden), step], tf.float32)  # <- culprit
        loss = tf.reduce_mean(tf.square(hidden * noisy - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for step in range(10):
    loss = train_step(inputs, tf.constant(step))
print("loss", float(loss))
