"""Gradients of four shards, made by a pool of threads, are added up as they come.

form: threads in Python
in: tf2.21
expect: op=* | class=order only/Python feed/structure/unordered access
"""
import concurrent.futures
import os
import time

import numpy as np
import tensorflow as tf

rows = np.random.RandomState(1).standard_normal([4, 16, 6]).astype(np.float32)
weights = tf.Variable(np.linspace(0.1, 1.0, 6, dtype=np.float32).reshape(6, 1))


def gradient(shard):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.exp(tf.matmul(shard, weights) * 0.7))
    time.sleep(os.urandom(1)[0] / 5e3)
    return tape.gradient(loss, weights)


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for step in range(4):
        total = tf.zeros([6, 1])
        for one in concurrent.futures.as_completed([pool.submit(gradient, tf.constant(shard)) for shard in rows]):
            total = total + one.result()  # <- culprit
        weights.assign_sub(3e-3 * total)
print(float(tf.reduce_sum(weights)))
