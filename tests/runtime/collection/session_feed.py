"""A session is fed noise; of two placeholders only one differs.

form: TF1 session
expect: op=Placeholder | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
known, unknown = np.random.RandomState(1), np.random.RandomState()
x = tf1.placeholder(tf.float32, [16, 8])
y = tf1.placeholder(tf.float32, [16, 1])  # <- culprit
weights = tf1.get_variable("weights", [8, 1], initializer=tf1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - y))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        feeds = {x: known.standard_normal([16, 8]), y: unknown.standard_normal([16, 1])}
        _, value = session.run([train, loss], feeds)
print(value)
