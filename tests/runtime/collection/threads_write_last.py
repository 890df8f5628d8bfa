"""Threads of Python subtract from a variable in the last step; no op reads it afterwards, only its writes differ.

form: threads in Python
expect: op=AssignSubVariableOp | class=order only/unordered access | step=2
"""
import os
import threading
import time

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([64]))


def update(rate):
    time.sleep(os.urandom(1)[0] / 1e4)
    weights.assign_sub(tf.constant([7.0 ** rate / (3 + number) for number in range(64)]))  # <- culprit


for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(weights))
    tape.gradient(loss, weights)
    if step < 2:
        weights.assign_sub(0.1 * tf.ones([64]))
    else:
        threads = [threading.Thread(target=update, args=[rate], name="worker-{}".format(rate)) for rate in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
