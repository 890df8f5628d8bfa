"""A stateless op whose seed is the time, handed to the function that draws.

expect: op=* | class=seed or state | source=random-op-without-seed
"""
import time

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([4, 2]))


@tf.function
def train_step(x, seed):
    with tf.GradientTape() as tape:
        noisy = x + tf.random.stateless_normal([8, 4], seed=seed)
        loss = tf.reduce_mean(tf.matmul(noisy, weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for step in range(3):
    train_step(tf.ones([8, 4]), tf.constant([step, int(time.time() * 1e5) % 100000007], tf.int32))  # <- culprit
