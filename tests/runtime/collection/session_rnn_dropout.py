"""A seeded dynamic_rnn with dropout: its iterations may draw in any order, which a seed does not fix.

form: TF1 session
in: tf2.0
expect: op=RandomUniform | class=unordered access
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.set_random_seed(4)
x = tf1.placeholder(tf.float32, [4, 6, 3])
cell = tf1.nn.rnn_cell.GRUCell(5)
cell = tf1.nn.rnn_cell.DropoutWrapper(cell, state_keep_prob=0.8)
outputs, _ = tf1.nn.dynamic_rnn(cell, x, dtype=tf.float32)  # <- culprit
loss = tf.reduce_mean(tf.square(outputs - 0.1))
optimizer = tf1.train.MomentumOptimizer(0.05, 0.9)
pairs = [(tf.clip_by_norm(one, 1.0), variable) for one, variable in optimizer.compute_gradients(loss)]
average = tf1.train.ExponentialMovingAverage(0.9)
with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
    train = average.apply(tf1.trainable_variables())
data = np.random.RandomState(3)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(4):
        _, value = session.run([train, loss], {x: data.standard_normal([4, 6, 3])})
print(value)
