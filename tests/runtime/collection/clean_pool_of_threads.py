"""Threads of a pool compute gradients and images, some in pieces, and end in any order; what they give has the order of
its tasks.

This program tests `tfdet locate`, which must find no difference.
form: threads in Python
in: tf2.21 tf2.0
expect: same
"""
import concurrent.futures
import multiprocessing.pool
import os
import time

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
rows = np.random.RandomState(1).standard_normal([6, 16, 6]).astype(np.float32)
weights = tf.Variable(np.linspace(0.1, 1.0, 6, dtype=np.float32).reshape(6, 1))


def gradient(shard):
    time.sleep(os.urandom(1)[0] / 5e3)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.exp(tf.matmul(shard, weights) * 0.7))
    time.sleep(os.urandom(1)[0] / 5e3)
    return tape.gradient(loss, weights)


def brighter(image, amount):
    time.sleep(os.urandom(1)[0] / 1e4)
    return tf.tanh(tf.constant(image) * amount)


with concurrent.futures.ThreadPoolExecutor(3) as pool, multiprocessing.pool.ThreadPool(3) as others:
    for step in range(4):
        shards = others.starmap(brighter, [(shard, 1.0 + number) for number, shard in enumerate(rows)])
        ahead = others.apply_async(brighter, (rows[0],), {"amount": 2.0})
        total = tf.add_n(list(pool.map(gradient, shards)) + [gradient(ahead.get())])
        weights.assign_sub(3e-3 * total)
print(float(tf.reduce_sum(weights)))
