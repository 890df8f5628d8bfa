"""map_fn whose function draws from NumPy, in a session.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: while and map_fn
expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
generator = np.random.RandomState()
weights = tf1.get_variable("weights", [8], initializer=tf1.ones_initializer())


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


def one(row):
    noisy = tf1.py_func(noise, [row], tf.float32)  # <- culprit
    noisy.set_shape([8])
    return noisy * weights


loss = tf.reduce_mean(tf.square(tf.map_fn(one, tf.ones([6, 8]))))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(3):
        _, value = session.run([train, loss])
print(value)
