r"""NumPy reads what hangs on the time of day.

in: tf2.21
says: : file \(|so does what was read before
"""

import os
import time

import numpy as np
import tensorflow as tf

P = os.path.join(os.path.dirname(os.path.abspath(__file__)), "f_np.npy")
np.save(P, np.full((16, 4), time.time() % 10, "float32"))
data = np.load(P)
x = tf.constant(data)
w = tf.Variable(tf.ones([4, 1]))
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    w.assign_sub(0.01 * tape.gradient(loss, w))
