import time

import numpy as np
import tensorflow as tf


class Augment:
    """Adds noise in Python."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def noisy(self, number):
        time.sleep(0.001)
        return (number / 32 + self.generator.normal(0, 0.1, 4)).astype(np.float32)

    def __call__(self, number):
        row = tf.numpy_function(self.noisy, [number], tf.float32)
        return tf.ensure_shape(row, [4])
