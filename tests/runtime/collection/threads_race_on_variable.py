"""Python threads add to one variable, and nothing says who is first: sums of floats depend on it.

form: threads in Python
expect: op=AssignAddVariableOp | class=order only/unordered access
"""
import os
import threading
import time

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([64]))


def work(number):
    for turn in range(10):
        time.sleep(os.urandom(1)[0] / 1e5)
        weights.assign_add(tf.fill([64], 10.0 ** number / 3))  # <- culprit


threads = [threading.Thread(target=work, args=[number], name="worker-{}".format(number)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(float(tf.reduce_sum(weights)))
