"""A variable that gets its value from NumPy in each step.

expect: op=Python | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))
scale = tf.Variable(tf.ones([8]))

for step in range(3):
    scale.assign(np.random.standard_normal([8]).astype(np.float32))  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([16, 8]) * scale, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
