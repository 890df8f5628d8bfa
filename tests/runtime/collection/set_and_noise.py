"""The order of a set and, beside it, noise: one fault hides the other.

form: several feeds
fresh: each run is a fresh process, as forks share the seed of hashes (PYTHONHASHSEED)
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
def train(numbers, noise):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.gather(table, numbers) - noise))
    table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, table)))
    return loss


for step in range(3):
    numbers = np.array([vocabulary[word] for word in WORDS[step:step + 8]], np.int32)
    noise = np.random.standard_normal([8, 4]).astype(np.float32)
    loss = train(tf.constant(numbers), tf.constant(noise))  # <- culprit
print(float(loss))
