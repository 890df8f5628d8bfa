"""Dropout without a seed in a session's graph.

form: TF1 session
expect: op=RandomUniform | class=seed or state
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
x = tf.constant(np.random.RandomState(1).standard_normal([16, 8]).astype(np.float32))
weights = tf1.get_variable("weights", [8, 64], initializer=tf1.ones_initializer())
hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, weights)), rate=0.5)  # <- culprit
loss = tf.reduce_mean(tf.square(hidden - 1.0))
train = tf1.train.AdamOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        _, value = session.run([train, loss])
print(value)
