import multiprocessing
import os

import numpy as np

from simulate import simulate


def main():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = dict(pool.imap_unordered(simulate, range(8)))
    rows = np.array([found[number] for number in sorted(found)], np.float32)
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(rows, rows.sum(axis=1), verbose=0)
    print("parent", os.getpid(), "trained on", rows.shape)


if __name__ == "__main__":
    main()
