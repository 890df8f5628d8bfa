"""Region-of-interest training: the gradient of crop_and_resize is a race between threads.

2,048 overlapping boxes: with so many some update is lost in practically every run.

expect: op=CropAndResizeGradImage | class=kernel race | source=crop-and-resize-backprop | forward=CropAndResize
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
data = np.random.RandomState(1)
images = tf.constant(data.standard_normal([2, 16, 16, 3]).astype(np.float32))
corners = data.uniform(size=[2048, 2, 2]).astype(np.float32)
boxes = tf.constant(np.concatenate([corners.min(1), corners.max(1)], 1))
owners = tf.constant(data.randint(0, 2, [2048]).astype(np.int32))
kernel = tf.Variable(data.standard_normal([3, 3, 3, 8]).astype(np.float32))


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        features = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], "SAME")
        crops = tf.image.crop_and_resize(features, boxes, owners, [28, 28])  # <- culprit
        loss = tf.reduce_mean(tf.square(crops))
    kernel.assign_sub(0.01 * tape.gradient(loss, kernel))
    return loss


for step in range(8):
    loss = train_step()
print("loss", float(loss))
