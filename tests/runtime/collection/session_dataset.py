"""A TF1 iterator over a dataset that is shuffled without a seed.

form: tf.data
expect: op=IteratorGetNext | class=input pipeline
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
rows = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
data = tf1.data.Dataset.from_tensor_slices(rows).shuffle(64).batch(16)
x = tf1.data.make_one_shot_iterator(data).get_next()  # <- culprit
weights = tf1.get_variable("weights", [8, 1], initializer=tf1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(4):
        _, value = session.run([train, loss])
print(value)
