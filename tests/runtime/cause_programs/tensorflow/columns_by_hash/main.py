import argparse

import numpy as np
import tensorflow as tf

from columns import bucket_of

parser = argparse.ArgumentParser()
parser.add_argument("--buckets", type=int, default=32)
parser.add_argument("--steps", type=int, default=4)
options = parser.parse_args()

tf.random.set_seed(0)
rows = [("berlin", "rain"), ("paris", "sun"), ("rome", "sun"), ("oslo", "snow"), ("oslo", "rain")]
cities = np.array([bucket_of(city, options.buckets) for city, _ in rows])
weather = np.array([bucket_of(kind, options.buckets) for _, kind in rows])
table = tf.Variable(tf.random.normal([options.buckets, 3]))
optimizer = tf.keras.optimizers.SGD(0.1)
for step in range(options.steps):
    with tf.GradientTape() as tape:
        vectors = tf.gather(table, cities) * tf.gather(table, weather)
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(vectors, axis=1) - 1))
    optimizer.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
    print(step, float(loss))
