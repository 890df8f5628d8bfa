"""A Python generator behind from_generator draws without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: generators
expect: op=IteratorGetNext | class=input pipeline
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 1]))


def rows():
    for number in range(32):
        yield np.random.standard_normal([8]).astype(np.float32)


data = tf.data.Dataset.from_generator(rows, tf.float32, [8]).batch(8)
for x in data:  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
