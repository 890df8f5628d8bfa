r"""Gradients of shards by plain threads, summed in order: nothing differs.

in: tf2.21
says: No difference
"""

import random
import threading
import time

import tensorflow as tf

tf.random.set_seed(1)
w = tf.Variable(tf.zeros([4, 1]))
x = tf.random.uniform([4, 8, 4], seed=1)
for _ in range(4):
    grads = [None] * 4

    def work(n):
        time.sleep(random.SystemRandom().random() / 100)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x[n], w) - 1.0))
        grads[n] = tape.gradient(loss, w)

    ts = [threading.Thread(target=work, args=(n,), name=f"shard-{n}") for n in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    total = grads[0] + grads[1] + grads[2] + grads[3]
    w.assign_sub(0.1 * total)
