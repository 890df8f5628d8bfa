"""A recurrence by tf.scan with noise that nobody seeded: its gradient goes through lists and a second loop.

expect: op=RandomStandardNormal | class=seed or state | source=random-op-without-seed
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([4]))


def cell(state, x):
    noise = tf.random.normal([4])  # <- culprit
    return state * 0.5 + x * weights + noise


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.scan(cell, x, initializer=tf.zeros([4])) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for step in range(3):
    train_step(tf.ones([5, 4]))
