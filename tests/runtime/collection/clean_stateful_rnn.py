"""A stateful GRU that keeps its state from batch to batch.

This program tests `tfdet locate`, which must find no difference.
form: Keras fit
in: tf2.21 tf2.0
expect: same
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(5)
np.random.seed(5)
getattr(tf.keras.utils, "set_random_seed", tf.random.set_seed)(5)
x = np.random.RandomState(1).standard_normal([32, 5, 3]).astype(np.float32)
inputs = tf.keras.Input(batch_shape=(8, 5, 3))
hidden = tf.keras.layers.GRU(6, stateful=True, recurrent_dropout=0.2)(inputs)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))
model.compile("adam", "mse")
for _ in range(2):
    model.fit(x, x.sum((1, 2)), batch_size=8, epochs=1, shuffle=False, verbose=0)
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_states() if hasattr(layer, "reset_states") else layer.reset_state()
