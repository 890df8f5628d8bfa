"""The weight is a single number, which NumPy copies: what is read of it is no value from Python.

form: eager
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weight = tf.Variable(0.5)

for step in range(4):
    x = tf.random.normal([6])  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.sin(x * weight) - 0.2))
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
