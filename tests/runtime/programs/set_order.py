"""The order of a set of strings decides which row of a table is whose: it differs from process to process.

expect: op=* | class=Python feed
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
WORDS = "the quick brown fox jumps over a lazy dog while nobody in this house is looking at it".split()
vocabulary = {word: number for number, word in enumerate(set(WORDS))}
table = tf.Variable(np.arange(len(WORDS) * 4, dtype=np.float32).reshape(-1, 4) / 64)


@tf.function
def train_step(numbers):
    with tf.GradientTape() as tape:
        rows = tf.gather(table, numbers)
        loss = tf.reduce_mean(tf.square(rows - 1.0))
    gradient = tf.convert_to_tensor(tape.gradient(loss, table))
    table.assign_sub(0.1 * gradient)
    return loss


for step in range(3):
    numbers = np.array([vocabulary[word] for word in WORDS[step:step + 8]], np.int32)
    loss = train_step(tf.constant(numbers))  # <- culprit
print("loss", float(loss))
