import numpy as np
import tensorflow as tf


class Regions:
    def __init__(self, count):
        generator = np.random.default_rng(1)
        corners = np.sort(generator.uniform(0, 1, (count, 2, 2)), axis=1)
        self.boxes = tf.constant(corners.reshape(count, 4), tf.float32)
        self.image = tf.constant(np.arange(count) % 2, tf.int32)

    def crop(self, features):
        return tf.image.crop_and_resize(features, self.boxes, self.image, [7, 7])
