"""A serial map whose NumPy function draws without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: tf.data
expect: op=IteratorGetNext | class=input pipeline
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8]))


def noise(x):
    return (x + np.random.standard_normal(x.shape)).astype(np.float32)


def augment(x):
    noisy = tf.numpy_function(noise, [x], tf.float32)
    noisy.set_shape([8])
    return noisy


data = tf.data.Dataset.from_tensor_slices(np.ones([32, 8], np.float32)).map(augment).batch(8)
for x in data:  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x * weights - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
