"""A session that only computes.

form: no optimizer
expect: op=RandomUniform | class=seed or state
"""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
points = tf1.random_uniform([1000, 2])  # <- culprit
inside = tf.reduce_mean(tf.cast(tf.reduce_sum(points ** 2, 1) < 1.0, tf.float32))
with tf1.Session() as session:
    print(4 * session.run(inside))
