"""How many steps are trained is decided by the operating system's generator.

form: structure
expect: length
"""
import os

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
x = tf.ones([16, 8])

for step in range(8 + int.from_bytes(os.urandom(3), "little") % 1000):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
print(float(loss))
