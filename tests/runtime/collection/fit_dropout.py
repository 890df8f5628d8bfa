"""Dropout in a Keras model without any seed; the weights begin with ones.

form: Keras fit
expect: op=* | class=seed or state
"""
import numpy as np
import tensorflow as tf

x = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
layers = [tf.keras.layers.Dense(16, "relu", kernel_initializer="ones"),
          tf.keras.layers.Dropout(0.5),  # <- culprit
          tf.keras.layers.Dense(1, kernel_initializer="ones")]
model = tf.keras.Sequential(layers)
model.compile("sgd", "mse")
model.fit(x, x.sum(1), batch_size=16, epochs=1, shuffle=False, verbose=0)  # <- or
