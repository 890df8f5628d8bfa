"""The training data come from NumPy's unseeded generator.

form: Keras fit
expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.set_random_seed(1)
x = np.random.standard_normal([64, 8]).astype(np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
model.fit(x, x.sum(1), batch_size=16, epochs=2, shuffle=False, verbose=0)  # <- culprit
