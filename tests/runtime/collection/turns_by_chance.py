"""How often a loop turns is left to the operating system's generator, anew in each step.

form: structure
expect: op=Tanh | class=structure
"""
import os

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.random.normal([8, 4], seed=2))
x = tf.ones([16, 8])

for step in range(6):
    with tf.GradientTape() as tape:
        hidden = tf.matmul(x, weights)
        for turn in range(1 + os.urandom(1)[0] % 4):
            hidden = tf.tanh(hidden)  # <- culprit
        loss = tf.reduce_mean(tf.square(hidden - 0.1))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
