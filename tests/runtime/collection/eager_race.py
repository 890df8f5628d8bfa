"""An eager loop through the gradient of crop_and_resize, whose threads add in any order.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: eager
expect: op=CropAndResizeGradImage | class=kernel race
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
data = np.random.RandomState(1)
corners = data.uniform(size=[2048, 2, 2]).astype(np.float32)
boxes = tf.constant(np.concatenate([corners.min(1), corners.max(1)], 1))
owners = tf.constant(data.randint(0, 2, [2048]).astype(np.int32))
image = tf.Variable(data.standard_normal([2, 16, 16, 8]).astype(np.float32))

for step in range(6):
    with tf.GradientTape() as tape:
        crops = tf.image.crop_and_resize(image, boxes, owners, [28, 28])  # <- culprit
        loss = tf.reduce_mean(tf.square(crops))
    image.assign_sub(0.1 * tape.gradient(loss, image))
print(float(loss))
