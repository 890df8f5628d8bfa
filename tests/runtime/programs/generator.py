"""A tf.random.Generator that took its state from the operating system, and is used elsewhere.

expect: op=NonDeterministicInts | class=seed or state | source=generator-without-seed
"""
import tensorflow as tf

kind = getattr(tf.random, "Generator", None) or tf.random.experimental.Generator
generator = kind.from_non_deterministic_state()  # <- culprit
weights = tf.Variable(tf.ones([4, 2]))


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(generator.normal([8, 4]), weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for step in range(3):
    train_step()
