"""The data of an initializable iterator are fed from NumPy's unseeded generator.

form: several feeds
expect: op=Placeholder | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
tf1.set_random_seed(1)
rows = tf1.placeholder(tf.float32, [64, 8])  # <- culprit
data = tf1.data.Dataset.from_tensor_slices(rows).batch(16)
iterator = tf1.data.make_initializable_iterator(data)
x = iterator.get_next()
weights = tf1.get_variable("weights", [8, 1], initializer=tf1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    session.run(iterator.initializer, {rows: np.random.standard_normal([64, 8])})
    for step in range(4):
        _, value = session.run([train, loss])
print(value)
