"""A session that is fed the same again and again.

This program tests `tfdet locate`, which must find no difference.
form: TF1 session
expect: same
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
generator = np.random.RandomState(1)
x = tf1.placeholder(tf.float32, [16, 8])
weights = tf1.get_variable("weights", [8, 1])
loss = tf.reduce_mean(tf.square(tf.nn.dropout(tf.matmul(x, weights), rate=0.3)))
train = tf1.train.AdamOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(5):
        _, value = session.run([train, loss], {x: generator.standard_normal([16, 8])})
print(value)
