import os

import numpy as np
import tensorflow as tf

from saving import load_if_there, save

tf.keras.utils.set_random_seed(0)
inputs = np.arange(40, dtype=np.float32).reshape(10, 4) / 40
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(1)])
load_if_there(model, os.path.join("checkpoints", "model.weights.h5"))
model.compile("adam", "mse")
history = model.fit(inputs, inputs.sum(axis=1), epochs=1, verbose=0)
save(model, os.path.join("checkpoints", "model.weights.h5"))
print("loss", history.history["loss"])
