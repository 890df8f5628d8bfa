"""A gradient penalty, seeded.

This program tests `tfdet locate`, which must find no difference.
form: gradients of gradients
expect: same
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))


@tf.function
def train(x):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.tanh(tf.matmul(x + tf.random.normal([16, 8], seed=1), weights)))
        penalty = tf.reduce_sum(tf.square(inner.gradient(loss, weights)))
    weights.assign_sub(0.1 * outer.gradient(penalty, weights))
    return penalty


for step in range(4):
    loss = train(tf.ones([16, 8]))
print(float(loss))
