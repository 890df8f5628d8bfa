"""The clock decides how the data drifts.

form: eager
expect: op=Timestamp | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
x = tf.ones([16, 8])

for step in range(4):
    with tf.GradientTape() as tape:
        drift = tf.cast(tf.math.mod(tf.timestamp(), 1.0), tf.float32)  # <- culprit
        loss = tf.reduce_mean(tf.square(tf.matmul(x + drift, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
