"""OneDeviceStrategy around a function that draws without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: distribution strategies
in: tf2.21 tf2.0
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
with strategy.scope():
    weights = tf.Variable(tf.ones([8, 4]))


def step(x):
    noisy = x + tf.random.normal([16, 8])  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(noisy, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


@tf.function
def train(x):
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    return run(step, args=(x,))


for number in range(3):
    train(tf.ones([16, 8]))
