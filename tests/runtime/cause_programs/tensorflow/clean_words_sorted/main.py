import numpy as np
import tensorflow as tf

from words import Words

tf.keras.utils.set_random_seed(0)
words = Words("we shall go on to the end we shall fight in france")
print("unique", len(words.unique), "shared", sorted(words.unique & {"we", "end", "peace"}), "hash", hash("we") % 10)
inputs = np.array([words.index[word] for word in words.text])
model = tf.keras.Sequential([tf.keras.layers.Embedding(len(words.index), 3), tf.keras.layers.Dense(len(words.index))])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(inputs[:-1, None], inputs[1:, None], verbose=0)
print("done")
