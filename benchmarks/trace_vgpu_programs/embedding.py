"""An embedding whose rows are summed by segment; on a GPU the segments' sums are atomics."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
random = np.random.RandomState(1)
rows = tf.constant(random.standard_normal([512, 8]).astype(np.float32))
segments = tf.constant(random.randint(0, 6, 512).astype(np.int32))
scale = tf.Variable(random.standard_normal([8]).astype(np.float32))

for step in range(2):
    with tf.GradientTape() as tape:
        sums = tf.math.unsorted_segment_sum(rows * scale, segments, 6)  # <- culprit
        loss = tf.reduce_mean(tf.square(sums))
    scale.assign_sub(0.001 * tape.gradient(loss, scale))
