"""A loop of a session's graph draws from NumPy.

form: while and map_fn
expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
generator = np.random.RandomState()
weights = tf1.get_variable("weights", [8, 8], initializer=tf1.ones_initializer())


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


def body(number, state):
    noisy = tf1.py_func(noise, [state], tf.float32)  # <- culprit
    noisy.set_shape([16, 8])
    return number + 1, tf.tanh(tf.matmul(noisy, weights))


_, state = tf.while_loop(lambda number, state: number < 4, body, [tf.constant(0), tf.ones([16, 8])])
loss = tf.reduce_mean(tf.square(state - 0.5))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(3):
        _, value = session.run([train, loss])
print(value)
