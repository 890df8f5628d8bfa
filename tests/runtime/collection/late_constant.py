"""All batches become tensors at the start, one differs, and it is used in step 6.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: late start
expect: op=* | class=Python feed | step=6
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
batches = [tf.constant(np.full([16, 8], number / 10.0, np.float32)) for number in range(9)]
batches[6] = tf.constant(np.random.standard_normal([16, 8]).astype(np.float32))
weights = tf.Variable(tf.ones([8, 4]))


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for batch in batches:
    loss = train(batch)  # <- culprit
print(float(loss))
