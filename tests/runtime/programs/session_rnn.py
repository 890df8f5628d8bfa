"""A recurrent network of TensorFlow 1 in a session: a loop and a cond, and their gradients by stacks.

expect: op=RandomStandardNormal | class=seed or state | source=random-op-without-seed
"""
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
weights = tf1.get_variable("weights", [4, 4], initializer=tf1.ones_initializer())


def cell(number, state, outputs):
    noise = tf1.random_normal([1, 4])  # <- culprit
    state = tf.tanh(0.1 * tf.matmul(state, weights) + noise)
    state = tf1.cond(tf.equal(number % 2, 0), lambda: state * 2.0, lambda: state)
    return number + 1, state, outputs.write(number, state)


first = [0, tf.ones([1, 4]), tf.TensorArray(tf.float32, 5)]
outputs = tf1.while_loop(lambda number, state, outputs: number < 5, cell, first)[2]
loss = tf.reduce_sum((outputs.stack() - 1.0) ** 2)
train = tf1.train.RMSPropOptimizer(0.01).minimize(loss)

with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(3):
        _, value = session.run([train, loss])
print("loss", value)
