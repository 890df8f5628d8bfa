"""A random op without a seed, beside NumPy's that has one.

expect: op=RandomStandardNormal | class=seed or state | source=random-op-without-seed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
np.random.seed(1)
weights = tf.Variable(np.random.standard_normal([8, 4]).astype(np.float32))
inputs = tf.constant(np.random.standard_normal([4, 8]).astype(np.float32))


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        noise = tf.random.normal([4, 8])  # <- culprit
        loss = tf.reduce_mean(tf.square(tf.matmul(x + noise, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train_step(inputs)
print("loss", float(loss))
