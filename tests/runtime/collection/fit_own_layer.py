"""A layer of the program's own pools regions; its gradient is a race.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: Keras fit
expect: op=CropAndResizeGradImage | class=kernel race
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.set_random_seed(1)
data = np.random.RandomState(1)
corners = data.uniform(size=[2048, 2, 2]).astype(np.float32)
BOXES = np.concatenate([corners.min(1), corners.max(1)], 1)
OWNERS = data.randint(0, 4, [2048]).astype(np.int32)


class Pool(tf.keras.layers.Layer):
    def call(self, features):
        crops = tf.image.crop_and_resize(features, BOXES, OWNERS, [28, 28])  # <- culprit
        return tf.reduce_mean(crops) + tf.reduce_mean(features, [1, 2, 3])


x = data.standard_normal([16, 16, 16, 3]).astype(np.float32)
y = data.standard_normal([16]).astype(np.float32)
inputs = tf.keras.Input([16, 16, 3])
hidden = tf.keras.layers.Conv2D(8, 3, padding="same", kernel_initializer="ones")(inputs)
model = tf.keras.Model(inputs, Pool()(hidden))
model.compile("sgd", "mse")
model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
