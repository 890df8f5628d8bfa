"""The gradient of a gradient's norm, with noise inside.

form: gradients of gradients
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))


@tf.function
def train(x):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            noisy = x + tf.random.normal([16, 8])  # <- culprit
            loss = tf.reduce_mean(tf.tanh(tf.matmul(noisy, weights)))
        slope = inner.gradient(loss, weights)
        penalty = tf.reduce_sum(tf.square(slope))
    weights.assign_sub(0.1 * outer.gradient(penalty, weights))
    return penalty


for step in range(3):
    loss = train(tf.ones([16, 8]))
print(float(loss))
