"""A Python generator hands noise to fit.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: generators
in: tf2.21 tf2.0
expect: op=* | class=Python feed/input pipeline
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
generator = np.random.RandomState()


def batches():
    while True:
        x = generator.standard_normal([16, 8]).astype(np.float32)
        yield x, x.sum(1)


model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
model.fit(batches(), steps_per_epoch=4, epochs=1, verbose=0)  # <- culprit
