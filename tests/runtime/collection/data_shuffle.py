"""An eager loop over a dataset that is shuffled without a seed.

form: tf.data
expect: op=IteratorGetNext | class=input pipeline
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 1]))
rows = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices(rows).shuffle(64).batch(16)

for x in data:  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
