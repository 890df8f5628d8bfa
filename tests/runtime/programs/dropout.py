"""Dropout without a seed: Keras 3 draws one with Python's generator and keeps it in a variable.

expect: op=* | class=seed or state | source=keras3-initializers
"""
import numpy as np
import tensorflow as tf

x = np.random.RandomState(1).standard_normal([32, 4]).astype(np.float32)
drop = tf.keras.layers.Dropout(0.5)  # <- culprit
dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
model = tf.keras.Sequential([drop, dense])
model.compile("sgd", "mse")
history = model.fit(x, x.sum(1), batch_size=8, epochs=1, shuffle=False, verbose=0)
print("loss", history.history["loss"][-1])
