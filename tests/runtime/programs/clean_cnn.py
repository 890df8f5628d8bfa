"""A convolutional network with dropout and batch normalization, trained by Keras fit.

expect: same
"""
import random

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
random.seed(1)  # Keras 3 draws its initialisers' seeds from here
np.random.seed(1)
tf.compat.v1.set_random_seed(1)
images = np.random.standard_normal([64, 12, 12, 3]).astype(np.float32)
labels = np.random.randint(0, 4, [64])

model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(8, 3, activation="relu", input_shape=(12, 12, 3)),
    tf.keras.layers.BatchNormalization(),
    tf.keras.layers.MaxPooling2D(2),
    tf.keras.layers.Dropout(0.25, seed=3),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(4),
])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.01), loss)
history = model.fit(images, labels, batch_size=16, epochs=2, shuffle=True, verbose=0)
print("loss", history.history["loss"][-1])
