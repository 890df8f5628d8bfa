"""A pool's processes make batches, which come in order; names and times are printed.

This program tests `tfdet locate`, which must find no difference.
`fresh` says why each run is a new process, not a fork of one.
form: several feeds
in: tf2.21
fresh: processes
expect: same
"""
import multiprocessing
import time
import uuid

import numpy as np


def made(number):
    return np.random.RandomState(number).standard_normal([4, 4]).astype(np.float32)


def main():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        batches = pool.map(made, range(6))
    import tensorflow as tf

    run, begun = uuid.uuid4(), time.time()
    weights = tf.Variable(tf.ones([4, 1]), name="weights")
    for batch in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(batch, weights)))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        print(run, float(loss), time.time() - begun)


if __name__ == "__main__":
    main()
