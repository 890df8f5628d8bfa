"""Threads load batches, and the loop takes them as they come.

form: threads in Python
in: tf2.21 tf2.0
expect: op=* | class=Python feed/order only
"""
import os
import queue
import threading
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
arrived = queue.Queue()


def load(number):
    batch = np.random.RandomState(number).standard_normal([8, 4]).astype(np.float32)
    time.sleep(os.urandom(1)[0] / 5e3)
    arrived.put(batch)


threads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
weights = tf.Variable(tf.ones([4, 2]))
for _ in threads:
    batch = tf.convert_to_tensor(arrived.get())  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.sigmoid(batch @ weights) - 0.1))
    weights.assign_sub(tape.gradient(loss, weights))
print(float(loss))
