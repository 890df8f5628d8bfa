r"""Keras' fit; noise that nobody seeded from the third batch on.

in: tf2.21
says: (Python feed|input pipeline)
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng()


def batches():
    for n in range(6):
        x = np.full((8, 4), n / 7, "float32")
        if n >= 2:
            x = x + rng.random((8, 4), dtype="float32")
        yield x, np.ones((8, 1), "float32")


model = tf.keras.Sequential(
    [tf.keras.Input((4,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)]
)
model.compile("adam", "mse")
model.fit(batches(), epochs=1, steps_per_epoch=6, verbose=0)
