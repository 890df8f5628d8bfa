"""Keras: dropout, batch-norm, a seeded pipeline; prints what must not change under trace."""

import random

import numpy as np
import tensorflow as tf

random.seed(1)
np.random.seed(1)
if tf.__version__ < "2":
    tf.compat.v1.enable_eager_execution()
    tf.compat.v1.set_random_seed(3)
else:
    tf.random.set_seed(3)
x = np.random.rand(32, 8, 8, 1).astype("float32")
y = np.random.randint(0, 3, 32)
model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(4, 3, input_shape=(8, 8, 1), activation="relu"), tf.keras.layers.BatchNormalization(),
    tf.keras.layers.Flatten(), tf.keras.layers.Dropout(0.3), tf.keras.layers.Dense(3)])
options = {"jit_compile": False} if tf.__version__ >= "2.2" else {}
model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              **options)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(32, seed=1).map(lambda a, b: (a * 2.0, b)).batch(8)
print(repr(model.fit(data, epochs=1, verbose=0).history["loss"]))
print([repr(float(value.sum())) for value in model.get_weights()])
