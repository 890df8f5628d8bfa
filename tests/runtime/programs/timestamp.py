"""The time of day becomes part of the loss.

expect: op=Timestamp | class=seed or state | source=timestamp
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
inputs = tf.constant(np.arange(32, dtype=np.float32).reshape(4, 8) / 32)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        now = tf.timestamp()  # <- culprit
        drift = tf.cast(tf.math.mod(now, 1.0), tf.float32)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - drift))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train_step(inputs)
print("loss", float(loss))
