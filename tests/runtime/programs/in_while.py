"""The culprit runs inside a while loop.

expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
generator = np.random.RandomState()  # unseeded
weights = tf.Variable(tf.ones([4, 4]))
inputs = tf.constant(np.arange(16, dtype=np.float32).reshape(4, 4) / 16)


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


@tf.function
def train_step(x):
    def body(i, state):
        state = tf.tanh(tf.matmul(state, weights))
        noisy = tf.numpy_function(noise, [state], tf.float32)  # <- culprit
        noisy.set_shape([4, 4])
        return i + 1, 0.9 * state + 0.1 * noisy

    _, state = tf.while_loop(lambda i, state: i < 5, body, [tf.constant(0), x])
    weights.assign_add(0.01 * state)
    return tf.reduce_sum(state)


for step in range(3):
    total = train_step(inputs)
print("total", float(total))
