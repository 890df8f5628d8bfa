"""Noise that was drawn before the first step strikes in step 5.

form: late start
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))
noise = tf.random.normal([16, 8])  # <- culprit
still = tf.ones([16, 8])

for step in range(8):
    x = noise if step == 5 else still
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
