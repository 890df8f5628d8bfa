"""Threads prepare batches; training takes them as they come.

form: threads in Python
expect: op=* | class=order only/Python feed
"""
import os
import queue
import threading
import time

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
ready = queue.Queue()


def prepare(number):
    time.sleep(os.urandom(1)[0] / 1e3)
    ready.put(np.full([16, 8], number / 10.0, np.float32))


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


threads = [threading.Thread(target=prepare, args=[number]) for number in range(8)]
for thread in threads:
    thread.start()
for step in range(8):
    loss = train(tf.constant(ready.get()))  # <- culprit
print(float(loss))
