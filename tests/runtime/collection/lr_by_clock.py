"""A callback sets the learning rate by the time that a batch took.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: Keras fit
in: tf2.21 tf2.0
expect: op=* | class=Python feed
"""
import time

import numpy as np
import tensorflow as tf

getattr(tf.keras.utils, "set_random_seed", tf.random.set_seed)(3)


class Adapt(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        self.begun = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        took = time.perf_counter() - self.begun
        self.model.optimizer.learning_rate.assign(0.01 / (1.0 + took))  # <- culprit


data = np.random.RandomState(2)
x = data.standard_normal([64, 6]).astype(np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.01), "mse")
model.fit(x, x.sum(1), batch_size=16, epochs=1, shuffle=False, verbose=0, callbacks=[Adapt()])
