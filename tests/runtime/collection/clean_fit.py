"""Keras with all seeds, dropout and shuffling.

form: Keras fit
expect: same
"""
import random

import numpy as np
import tensorflow as tf

random.seed(1)
np.random.seed(1)
tf.compat.v1.set_random_seed(1)
x = np.random.standard_normal([64, 8]).astype(np.float32)
layers = [tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(1)]
model = tf.keras.Sequential(layers)
model.compile("adam", "mse")
model.fit(x, x.sum(1), batch_size=16, epochs=2, verbose=0)
