"""Inference with dropout switched on, for an estimate of how sure a model is.

form: no optimizer
expect: op=* | class=seed or state
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
dense = tf.keras.layers.Dense(16, kernel_initializer="ones")
x = tf.constant(np.random.RandomState(1).standard_normal([16, 8]).astype(np.float32))
for number in range(4):
    sure = tf.reduce_mean(tf.nn.dropout(dense(x), rate=0.5))  # <- culprit
print(float(sure))
