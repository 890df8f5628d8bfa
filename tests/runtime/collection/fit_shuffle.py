"""fit shuffles by itself, and no seed was set.

form: Keras fit
in: tf2.21 tf2.0
expect: op=* | class=input pipeline
"""
import numpy as np
import tensorflow as tf

x = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
model.fit(x, x.sum(1), batch_size=16, epochs=2, verbose=0)  # <- culprit
