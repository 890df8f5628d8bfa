"""A recurrent loop in a session.

This program tests `tfdet locate`, which must find no difference.
form: while and map_fn
expect: same
"""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
weights = tf1.get_variable("weights", [8, 8])


def body(number, state):
    return number + 1, tf.tanh(tf.matmul(state, weights))


_, state = tf.while_loop(lambda number, state: number < 6, body, [tf.constant(0), tf.ones([16, 8])])
loss = tf.reduce_mean(tf.square(state - 0.5))
train = tf1.train.AdamOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        _, value = session.run([train, loss])
print(value)
