"""A parallel map whose order is left open: what is ready first comes first.

expect: op=IteratorGetNext | class=input pipeline | source=tf-data-unordered
"""
import os
import time

import numpy as np
import tensorflow as tf

weights = tf.Variable(tf.ones([4]))


def wait(number):
    time.sleep(os.urandom(1)[0] / 2e4)
    return np.float32(number)


def load(number):
    return tf.ones([4]) * tf.numpy_function(wait, [number], tf.float32) / 16.0


options = tf.data.Options()
name = "deterministic" if hasattr(options, "deterministic") else "experimental_deterministic"
setattr(options, name, False)
data = tf.data.Dataset.range(16)
data = data.map(load, num_parallel_calls=4)  # <- culprit
data = data.with_options(options)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x * weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for sample in data:
    train_step(sample)
