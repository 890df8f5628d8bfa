"""A penalty on the gradient of crop_and_resize: the race is in the first gradient.

form: gradients of gradients
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
image = tf.constant(data.standard_normal([2, 16, 16, 8]).astype(np.float32))
scale = tf.Variable(tf.ones([8]))


@tf.function
def train():
    with tf.GradientTape() as tape:
        scaled = image * scale
        crops = tf.image.crop_and_resize(scaled, boxes, owners, [28, 28])  # <- culprit
        loss = tf.reduce_mean(crops ** 4)
    slope = tape.gradient(loss, scale)
    scale.assign_sub(0.1 * slope * tf.norm(slope))
    return loss


for step in range(6):
    loss = train()
print(float(loss))
