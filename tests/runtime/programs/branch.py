"""A Python branch goes another way in every second run, told by a counter in the file that PROGRAM_STATE names.

expect: op=* | class=structure
"""
import os

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)


def times_run():
    path = os.environ["PROGRAM_STATE"]
    count = os.path.getsize(path) if os.path.exists(path) else 0
    with open(path, "a") as state:
        state.write(".")
    return count


wide = times_run() % 2
weights = tf.Variable(tf.ones([8, 4]))
inputs = tf.constant(np.arange(32, dtype=np.float32).reshape(4, 8) / 32)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        hidden = tf.matmul(x, weights)
        if wide:
            hidden = tf.nn.softplus(hidden)  # <- culprit
        loss = tf.reduce_mean(tf.square(hidden - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train_step(inputs)
print("loss", float(loss))
