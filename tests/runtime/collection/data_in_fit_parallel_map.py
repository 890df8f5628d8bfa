"""fit on a dataset whose parallel map draws with a seed: who gets which number is a race.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: tf.data
in: tf2.21 tf2.0
expect: op=IteratorGetNext | class=input pipeline
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
rows = np.random.RandomState(1).standard_normal([512, 8]).astype(np.float32)


def augment(x):
    return x + tf.random.normal([8], seed=2), tf.reduce_sum(x)


data = tf.data.Dataset.from_tensor_slices(rows)
data = data.map(augment, num_parallel_calls=8)  # <- culprit
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
model.fit(data.batch(32), epochs=1, verbose=0)
