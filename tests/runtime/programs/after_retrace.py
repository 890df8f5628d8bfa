"""The last batch is smaller: the function is traced again, and only its second trace has the culprit.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([8, 4]))
points = np.arange(80, dtype=np.float32).reshape(10, 8) / 80


def pad(x):
    return np.concatenate([x, generator.standard_normal([1, 8]).astype(np.float32)])


@tf.function
def train_step(x):
    if x.shape[0] < 4:
        x = tf.numpy_function(pad, [x], tf.float32)  # <- culprit
        x.set_shape([3, 8])
    state = tf.matmul(x, weights)
    weights.assign_sub(0.01 * tf.matmul(x, state, transpose_a=True))
    return tf.reduce_sum(state)


for epoch in range(2):
    for start in (0, 4, 8):
        total = train_step(tf.constant(points[start:start + 4]))
print("total", float(total))
