"""A generator of TensorFlow's with a seed.

form: generators
in: tf2.21 tf2.0
expect: same
"""
import tensorflow as tf

kind = getattr(tf.random, "Generator", None) or tf.random.experimental.Generator
generator = kind.from_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(generator.normal([16, 8]), weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
