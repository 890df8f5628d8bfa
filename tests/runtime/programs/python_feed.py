"""An eager loop on batches that NumPy draws without a seed.

expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
x = np.random.standard_normal([32, 8]).astype(np.float32)  # unseeded
y = x.sum(1, keepdims=True)

kernel = tf.Variable(tf.ones([8, 1]))


def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, kernel) - y))
    kernel.assign_sub(0.01 * tape.gradient(loss, kernel))
    return loss


for step in range(3):
    rows = slice(8 * step, 8 * step + 8)
    loss = train_step(tf.constant(x[rows]), tf.constant(y[rows]))  # <- culprit
print("loss", float(loss))
