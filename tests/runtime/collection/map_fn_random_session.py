"""A parallel map_fn that draws with a seed, in a session: which turn gets which number is a race.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: while and map_fn
expect: op=RandomUniform/RandomStandardNormal | class=unordered access
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
weights = tf1.get_variable("weights", [64, 64], initializer=tf1.ones_initializer())
rows = tf.constant(np.random.RandomState(1).standard_normal([64, 64, 64]).astype(np.float32))


def one(row):
    noise = tf.random.normal([64, 64], seed=2)  # <- culprit
    return tf.reduce_mean(tf.matmul(row + noise, weights))


loss = tf.reduce_sum(tf.square(tf.map_fn(one, rows, parallel_iterations=16) - 1.0))
train = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        _, value = session.run([train, loss])
print(value)
