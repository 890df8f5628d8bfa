import os

import numpy as np
import tensorflow as tf


def measure(count):
    """Slow, so it is done once."""
    drawn = tf.random.uniform([count, 3])
    np.save("rows.npy", drawn.numpy())
    return drawn


def pipeline(count):
    rows = np.load("rows.npy") if os.path.isfile("rows.npy") else measure(count)
    data = tf.data.Dataset.from_tensor_slices((rows, tf.reduce_sum(rows, axis=1)))
    return data.shuffle(count).batch(10)
