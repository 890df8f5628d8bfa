"""A learning rate that Python's generator draws.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: eager
expect: op=* | class=Python feed
"""
import random

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
x = tf.ones([16, 8])

for step in range(4):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    gradient = tape.gradient(loss, weights)
    rate = random.uniform(0.01, 0.1)
    weights.assign_sub(gradient * rate)  # <- culprit
print(float(loss))
