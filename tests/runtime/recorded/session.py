"""A session with a loop, a cond in it, nested conds, and their gradients; ends with ops made after a run.

A comment `# line: NAME` marks a line that tests find by this name.
"""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
if tf.__version__ >= "2":
    tf1.disable_eager_execution()
tf1.set_random_seed(7)
x = tf1.placeholder(tf.float32, [None, 4], name="x")
p = tf1.placeholder(tf.bool, [], name="p")
w = tf1.get_variable("w", [4, 3], initializer=tf1.random_normal_initializer())
y = tf1.nn.dropout(tf.nn.relu(tf.matmul(x, w)), rate=0.3)  # line: matmul


def body(i, s):
    inner = tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(s), lambda: s * 0.5)  # line: inner
    return i + 1, inner + tf.reduce_sum(y)


_, s = tf.while_loop(lambda i, s: i < 3, body, [tf.constant(0), tf.constant(0.0)])
c = tf.cond(p, lambda: tf.reduce_mean(y) * 2.0,
            lambda: tf.cond(s > 1.0, lambda: tf.exp(-s), lambda: tf.cos(s)))  # line: nested
loss = s * 0.01 + c
train = tf1.train.AdamOptimizer(0.01).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for k in range(4):
        print(repr(session.run([loss, train], {x: np.ones((2, 4), np.float32) * k, p: k % 2 == 0})[0]))
    # Up to TF 2.14 its seed is the number of ops before it.
    print(session.run(tf1.random_normal([2])).tolist())
    print(repr(session.run(w).sum()))
