"""Inference alone.

form: no optimizer
expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
dense = tf.keras.layers.Dense(16, kernel_initializer="ones")
x = tf.constant(np.random.RandomState(1).standard_normal([16, 8]).astype(np.float32))
for number in range(3):
    total = tf.reduce_mean(tf.nn.softmax(dense(x)))
print(float(total))
