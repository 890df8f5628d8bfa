"""A small CNN that looks at crops of its images; on a GPU crop_and_resize's gradient adds with atomics."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
random = np.random.RandomState(1)
images = tf.constant(random.standard_normal([2, 12, 12, 3]).astype(np.float32))
corners = random.uniform(0, 0.4, [8, 2])
boxes = tf.constant(np.concatenate([corners, corners + 0.5], 1).astype(np.float32))
which = tf.constant(np.arange(8) % 2, tf.int32)
kernel = tf.Variable(random.standard_normal([3, 3, 3, 4]).astype(np.float32))
dense = tf.Variable(random.standard_normal([4, 1]).astype(np.float32))

for step in range(2):
    with tf.GradientTape() as tape:
        seen = tf.nn.conv2d(images, kernel, 1, "SAME")
        crops = tf.image.crop_and_resize(seen, boxes, which, [5, 5])  # <- culprit
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.reduce_mean(crops, [1, 2]), dense)))
    for one, slope in zip((kernel, dense), tape.gradient(loss, (kernel, dense))):
        one.assign_sub(0.1 * slope)
