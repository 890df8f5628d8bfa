"""Keras with tf.random.set_seed alone: Keras 3 draws the seeds of its initializers from Python's generator.

expect: op=* | class=seed or state | source=keras3-initializers
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
x = np.random.RandomState(1).standard_normal([32, 8]).astype(np.float32)
layers = [tf.keras.layers.Input([8]), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)]
model = tf.keras.Sequential(layers)  # <- culprit
model.compile("sgd", "mse")
history = model.fit(x, x.sum(1), epochs=1, batch_size=8, verbose=0)
print("loss", history.history["loss"][-1])
