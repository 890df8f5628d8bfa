"""Threads work on what is theirs alone, however long each takes; their results are added in order.

This program tests `tfdet locate`, which must find no difference.
form: threads in Python
expect: same
"""
import os
import threading
import time

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
results = {}


def work(number):
    time.sleep(os.urandom(1)[0] / 1e4)
    results[number] = tf.matmul(tf.fill([16, 8], number / 10.0), tf.ones([8, 4]))


for step in range(3):
    threads = [threading.Thread(target=work, args=[number], name="worker-{}".format(number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with tf.GradientTape() as tape:
        loss = tf.add_n([tf.reduce_mean(results[number][:8] * weights) for number in range(4)])
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
