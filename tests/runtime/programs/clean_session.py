"""A TF1 model in a session: feeds, seeded dropout, cond, while, several runs of parts, Adam.

expect: same
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
data = np.random.RandomState(1)

graph = tf1.Graph()
with graph.as_default():
    tf1.set_random_seed(1)
    x = tf1.placeholder(tf.float32, [None, 8, 8, 1], "x")
    y = tf1.placeholder(tf.int32, [None], "y")
    training = tf1.placeholder(tf.bool, [], "training")
    kernel = tf1.get_variable("kernel", [3, 3, 1, 4])
    dense = tf1.get_variable("dense", [144, 3])
    hidden = tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "VALID"))
    flat = tf.reshape(hidden, [-1, 144])
    kept = tf.cond(training, lambda: flat * tf.floor(0.8 + tf1.random_uniform(tf.shape(flat), seed=2)), lambda: flat)
    _, state = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h + 0.1 * tf.tanh(h)), [tf.constant(0), kept])
    logits = tf.matmul(state, dense)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf1.train.AdamOptimizer(0.01).minimize(loss)
    init = tf1.global_variables_initializer()

with tf1.Session(graph=graph) as session:
    session.run(init)
    for step in range(4):
        feed = {x: data.standard_normal([8, 8, 8, 1]), y: data.randint(0, 3, [8]), training: step % 2 == 0}
        value, _ = session.run([loss, train], feed)
    feed[training] = False
    session.run(loss, feed)
print("loss", float(value))
