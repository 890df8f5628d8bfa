"""A training step that returns nothing gets noise from the operating system.

expect: op=Python | class=Python feed
"""
import os

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([4, 2]))


@tf.function
def update(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


@tf.function
def train_step(x):
    update(x)


for step in range(3):
    noise = np.frombuffer(os.urandom(32), np.uint8).astype(np.float32).reshape(8, 4) / 255
    train_step(tf.constant(noise))  # <- culprit
