"""Words become rows by Python's hash, which has another seed in every process.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
`fresh` says why each run is a new process, not a fork of one.
form: several feeds
fresh: PYTHONHASHSEED
expect: op=* | class=Python feed | source=python-set-order
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
WORDS = "the quick brown fox jumps over a lazy dog while nobody in this house is looking at it".split()
table = tf.Variable(np.arange(128, dtype=np.float32).reshape(32, 4) / 64)


@tf.function
def train(numbers):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.gather(table, numbers) - 1.0))
    table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))
    return loss


for step in range(3):
    numbers = np.array([hash(word) % 32 for word in WORDS[step:step + 8]], np.int32)
    loss = train(tf.constant(numbers))  # <- culprit
print(float(loss))
