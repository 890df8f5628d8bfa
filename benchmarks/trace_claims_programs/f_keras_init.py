r"""A callback of Keras' fit adds what nobody seeded to the weights.

in: tf2.21
says: seed or state
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)


class Jitter(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 3:
            kernel = self.model.layers[0].kernel
            kernel.assign_add(tf.random.Generator.from_non_deterministic_state().normal(kernel.shape) * 1e-4)


x = np.linspace(0, 1, 256).reshape(64, 4).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x[:, :1], batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=[Jitter()])
