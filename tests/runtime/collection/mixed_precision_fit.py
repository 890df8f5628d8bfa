"""Keras' mixed_float16 policy; noise without a seed in the model.

form: mixed precision
in: tf2.21
expect: op=* | class=seed or state
"""
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
layers = [tf.keras.layers.Dense(16, kernel_initializer="ones"),
          tf.keras.layers.GaussianNoise(0.5),  # <- culprit
          tf.keras.layers.Dense(1, kernel_initializer="ones", dtype="float32")]
model = tf.keras.Sequential(layers)
model.compile("sgd", "mse")
model.fit(x, x.sum(1), batch_size=16, epochs=1, shuffle=False, verbose=0)
