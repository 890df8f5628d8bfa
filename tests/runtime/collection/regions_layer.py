"""A custom layer that crops regions: the threads of its gradient race.

form: Keras fit
in: tf2.21
expect: op=CropAndResizeGradImage | class=kernel race
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
data = np.random.RandomState(1)
corners = data.uniform(size=[1500, 2, 2]).astype(np.float32)
BOXES = np.concatenate([corners.min(1), corners.max(1)], 1)
OWNERS = data.randint(0, 2, [1500]).astype(np.int32)


class Regions(tf.keras.layers.Layer):
    def call(self, image):
        found = tf.image.crop_and_resize(image, BOXES, OWNERS, [20, 20])  # <- culprit
        return tf.reshape(tf.reduce_mean(found, [0]), [1, 20, 20, 8])


inputs = tf.keras.Input([16, 16, 3], batch_size=2)
found = tf.keras.layers.Conv2D(8, 3, padding="same")(inputs)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(Regions()(found)))
model.compile("sgd", "mse")
x = data.standard_normal([2, 16, 16, 3]).astype(np.float32)
dataset = tf.data.Dataset.from_tensors((x, np.ones([1, 20, 20, 1], np.float32))).repeat(5)
model.fit(dataset, epochs=1, verbose=0)
