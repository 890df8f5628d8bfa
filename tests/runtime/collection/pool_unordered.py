"""Processes of a pool make the batches; imap_unordered gives them as they are ready.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
`fresh` says why each run is a new process, not a fork of one.
form: several feeds
in: tf2.21
fresh: processes
expect: op=* | class=Python feed/order only
"""
import multiprocessing
import os
import time

import numpy as np


def made(number):
    time.sleep(os.urandom(1)[0] / 2e3)
    return np.random.RandomState(number).standard_normal([4, 4]).astype(np.float32)


def main():
    with multiprocessing.get_context("fork").Pool(3) as pool:
        batches = list(pool.imap_unordered(made, range(9)))
    import tensorflow as tf

    weights = tf.Variable(tf.ones([4, 1]))
    for batch in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(batch, weights)))  # <- culprit
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
    print(float(loss))


if __name__ == "__main__":
    main()
