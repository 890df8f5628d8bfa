"""A case of several branches, noise in one of them, and the gradient through it.

expect: op=RandomUniform | class=seed or state | source=random-op-without-seed | step=1
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([4]))


def plain():
    return weights * 1.0


def noisy():
    return weights * tf.random.uniform([4])  # <- culprit


@tf.function
def train_step(number):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.switch_case(number, [plain, noisy]) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for step in range(3):
    train_step(tf.constant(step))
