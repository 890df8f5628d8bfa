"""A gradient of crop_and_resize in a program without weights, without an update.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: no optimizer
expect: op=CropAndResizeGradImage | class=kernel race
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
data = np.random.RandomState(1)
corners = data.uniform(size=[4096, 2, 2]).astype(np.float32)
boxes = tf.constant(np.concatenate([corners.min(1), corners.max(1)], 1))
owners = tf.constant(data.randint(0, 2, [4096]).astype(np.int32))
image = tf.constant(data.standard_normal([2, 16, 16, 8]).astype(np.float32))


@tf.function
def saliency():
    with tf.GradientTape() as tape:
        tape.watch(image)
        crops = tf.image.crop_and_resize(image, boxes, owners, [28, 28])  # <- culprit
        loss = tf.reduce_mean(tf.square(crops))
    return tape.gradient(loss, image)


print(float(tf.reduce_sum(saliency())))
