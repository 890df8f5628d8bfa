"""A histogram, in a function, of values from NumPy.

form: no optimizer
expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)


@tf.function
def histogram(values):
    return tf.histogram_fixed_width(values, [-1.0, 1.0], 16)


for number in range(3):
    values = np.random.standard_normal([256]).astype(np.float32)
    print(histogram(tf.constant(values)).numpy())  # <- culprit
