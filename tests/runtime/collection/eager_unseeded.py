"""Noise that nobody seeded, drawn op by op.

form: eager
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))

for step in range(4):
    with tf.GradientTape() as tape:
        noise = tf.random.normal([16, 8])  # <- culprit
        loss = tf.reduce_mean(tf.square(tf.matmul(noise, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
