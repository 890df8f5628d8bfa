"""A loop turns more often in one step than in another, as the data say, and always alike.

This program tests `tfdet locate`, which must find no difference.
form: while and map_fn
expect: same
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.random.normal([8, 4], seed=2))
x = tf.ones([16, 8])

for step in range(6):
    far = tf.random.uniform([], 1.0, 64.0, seed=3)
    with tf.GradientTape() as tape:
        hidden = tf.matmul(x, weights)
        while float(far) > 1.0:
            far = far / 2.0
            hidden = tf.tanh(hidden)
        loss = tf.reduce_mean(tf.square(hidden - 0.1))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
