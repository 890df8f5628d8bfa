"""A histogram of seeded values, in a session.

form: no optimizer
expect: same
"""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
counts = tf.histogram_fixed_width(tf1.random_normal([1000], seed=1), [-3.0, 3.0], 16)
with tf1.Session() as session:
    print(session.run(counts))
