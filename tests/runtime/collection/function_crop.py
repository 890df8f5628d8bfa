"""Random crops without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: function
expect: op=RandomUniformInt | class=seed or state
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
kernel = tf.Variable(tf.ones([3, 3, 1, 2]))
images = tf.constant(np.arange(1024, dtype=np.float32).reshape(4, 16, 16, 1) / 1024)


@tf.function
def train():
    crop = tf.image.random_crop(images, [4, 8, 8, 1])  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.conv2d(crop, kernel, [1, 1, 1, 1], "VALID")))
    kernel.assign_sub(0.01 * tape.gradient(loss, kernel))
    return loss


for step in range(4):
    loss = train()
print(float(loss))
