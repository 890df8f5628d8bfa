"""Keras layers and an optimizer in a loop of the program's own; a noise layer has no seed.

This program tests `tfdet locate`, which must name the line marked `culprit`, or one marked `or`, as the cause.
form: custom loop
expect: op=* | class=seed or state
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
x = tf.constant(np.random.RandomState(1).standard_normal([16, 8]).astype(np.float32))
noise = tf.keras.layers.GaussianNoise(0.5)  # <- or
dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
dense(x)
optimizer = tf.keras.optimizers.SGD(0.1)

for step in range(4):
    with tf.GradientTape() as tape:
        noisy = noise(x, training=True)  # <- culprit
        loss = tf.reduce_mean(tf.square(dense(noisy)))
    gradients = tape.gradient(loss, dense.trainable_variables)
    optimizer.apply_gradients(zip(gradients, dense.trainable_variables))
print(float(loss))
