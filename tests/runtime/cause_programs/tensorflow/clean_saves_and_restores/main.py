import os
import tempfile

import numpy as np
import tensorflow as tf

from saving import keep_best

tf.keras.utils.set_random_seed(0)
inputs = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
with tempfile.TemporaryDirectory() as folder:
    best = keep_best(os.path.join(folder, f"best-{os.getpid()}.weights.h5"))
    model.fit(inputs, inputs.mean(axis=1), epochs=2, verbose=0, callbacks=[best], validation_data=(inputs, inputs.mean(axis=1)))
    model.load_weights(best.filepath)
model.fit(inputs, inputs.mean(axis=1), verbose=0)
model.save_weights("final.weights.h5")
print("size", os.path.getsize("final.weights.h5"), "changed", os.path.getmtime("final.weights.h5"))
