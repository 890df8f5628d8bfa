"""fit on a seeded Python generator.

This program tests `tfdet locate`, which must find no difference.
form: generators
in: tf2.21 tf2.0
expect: same
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
generator = np.random.RandomState(1)


def batches():
    while True:
        x = generator.standard_normal([16, 8]).astype(np.float32)
        yield x, x.sum(1)


model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
model.fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)
