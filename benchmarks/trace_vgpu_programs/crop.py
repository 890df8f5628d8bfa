"""Crops of images by learned weights, without a convolution; crop_and_resize's gradient adds with atomics."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
random = np.random.RandomState(1)
images = tf.constant(random.standard_normal([2, 12, 12, 3]).astype(np.float32))
corners = random.uniform(0, 0.4, [8, 2])
boxes = tf.constant(np.concatenate([corners, corners + 0.5], 1).astype(np.float32))
which = tf.constant(np.arange(8) % 2, tf.int32)
weights = tf.Variable(random.standard_normal([12, 12, 3]).astype(np.float32))

for step in range(2):
    with tf.GradientTape() as tape:
        crops = tf.image.crop_and_resize(images * weights, boxes, which, [5, 5])  # <- culprit
        loss = tf.reduce_mean(tf.square(crops))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
