"""A TF1 training loop in a session: fed data, a cond, a while loop, an optimizer; dropout without a seed.

expect: op=RandomUniform | class=seed or state | source=random-op-without-seed
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
data = np.random.RandomState(1)

graph = tf1.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [None, 8], "x")
    y = tf1.placeholder(tf.float32, [None, 1], "y")
    w1 = tf1.get_variable("w1", initializer=data.standard_normal([8, 16]).astype(np.float32))
    w2 = tf1.get_variable("w2", initializer=data.standard_normal([16, 1]).astype(np.float32))
    hidden = tf.nn.relu(tf.matmul(x, w1))
    _, hidden = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h)), [tf.constant(0), hidden])
    scale = tf.cond(tf.reduce_sum(hidden) > 1e9, lambda: hidden * 0.5, lambda: hidden * 1.5)
    kept = tf.floor(0.5 + tf1.random_uniform(tf.shape(scale)))  # <- culprit
    loss = tf.reduce_mean(tf1.squared_difference(tf.matmul(scale * kept, w2), y))
    train = tf1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    init = tf1.global_variables_initializer()

with tf1.Session(graph=graph) as session:
    session.run(init)
    for step in range(4):
        feed = {x: data.standard_normal([4, 8]), y: data.standard_normal([4, 1])}
        value, _ = session.run([loss, train], feed)
print("loss", float(value))
