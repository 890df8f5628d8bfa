"""The tensors behind a dataset come from NumPy's unseeded generator: nothing in the pipeline is at fault.

form: tf.data
expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 1]))
rows = np.random.standard_normal([64, 8]).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices(rows).batch(16)  # <- culprit

for x in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
