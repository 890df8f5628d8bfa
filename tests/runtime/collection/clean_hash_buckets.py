"""Words become buckets by TensorFlow's own hash; a table of the vocabulary; ragged rows.

This program tests `tfdet locate`, which must find no difference.
form: function
in: tf2.21
expect: same
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(2)
texts = tf.constant(["a quick brown fox", "the lazy dog", "nobody looks at it", "fox and dog"])
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
    tf.constant(["fox", "dog"]), tf.constant([1, 2])), default_value=0)
embedding = tf.Variable(tf.random.uniform([32, 4], seed=1))


@tf.function
def train(texts):
    words = tf.strings.split(texts)
    places = tf.strings.to_hash_bucket_fast(words.flat_values, 32)
    weights = tf.cast(table.lookup(words.flat_values), tf.float32) + 1.0
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup(embedding, places) * weights[:, None]
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(words.with_flat_values(rows), 1) - 1.0))
    gradient = tape.gradient(loss, embedding)
    embedding.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
    return loss


for _ in range(4):
    loss = train(texts)
print(np.float32(loss))
