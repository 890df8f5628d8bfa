import random
import threading
import time

import numpy as np
import tensorflow as tf

SEEN = set()


def read(number):
    SEEN.add(threading.get_ident())
    time.sleep(random.random() / 300)
    return np.random.default_rng(number).normal(size=3).astype(np.float32)


def rows(count):
    def decode(number):
        return tf.ensure_shape(tf.numpy_function(read, [number], tf.float32), [3])

    return tf.data.Dataset.range(count).map(decode, num_parallel_calls=4)
