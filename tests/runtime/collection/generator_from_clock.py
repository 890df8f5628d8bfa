"""A generator of TensorFlow's whose seed is the time.

form: generators
in: tf2.21 tf2.0
expect: op=* | class=Python feed/seed or state
"""
import time

import tensorflow as tf

kind = getattr(tf.random, "Generator", None) or tf.random.experimental.Generator
generator = kind.from_seed(int(time.time() * 1e6) % 1000003)  # <- culprit
weights = tf.Variable(tf.ones([8, 4]))

for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(generator.normal([16, 8]), weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
