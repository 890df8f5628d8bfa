"""A layer draws by NumPy while it is traced: a constant of that run.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: Keras fit
in: tf2.21
expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
drawing = np.random.default_rng()


class Masked(tf.keras.layers.Layer):
    def call(self, x):
        mask = drawing.uniform(size=[8]).astype(np.float32)
        return x * tf.round(mask + 0.2)  # <- culprit


model = tf.keras.Sequential([Masked(), tf.keras.layers.Dense(1)])
model.compile("sgd", "mae")
x = np.random.standard_normal([24, 8]).astype(np.float32)
model.fit(x, x.mean(1), batch_size=6, epochs=1, verbose=0)
