"""Cases of input pipelines and data loaders.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
unplaced: why no ops are checked.  make.option: a setting that a solution may change.  Mode host: plain Python.
"""

import os
import time
import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)

PIPELINE = "input pipelines run on the host"


def whole(dataset, count):
    """All elements as one tensor."""
    dataset = dataset.batch(count)
    if tf.executing_eagerly():
        return next(iter(dataset))
    tf1.set_random_seed(7)  # under determinism this iterator asks for a seed, random or not
    return tf1.data.make_one_shot_iterator(dataset).get_next()


def with_order(dataset, ordered):
    options = tf.data.Options()
    name = "deterministic" if hasattr(options, "deterministic") else "experimental_deterministic"
    setattr(options, name, bool(ordered))
    return dataset.with_options(options)


def dawdle(index):
    """Elements take 0 to 2 ms: reading files is like that."""
    def wait(value):
        time.sleep(ord(os.urandom(1)) / 128000.0)
        return value
    (index,) = tf1.py_func(wait, [index], [tf.int64])
    return tf.reshape(index, [])


@case("dataset-map-graph-seed", modes=("eager", "session"), unplaced=PIPELINE)
def sequential_random_map(make):
    def program():
        tf1.set_random_seed(7)
        return whole(tf.data.Dataset.range(64).map(lambda i: tf.random.uniform((8,))), 64)
    return make.program(program)


@case("tf-data-parallel-map", modes=("eager", "session"), unplaced=PIPELINE)
def parallel_random_map(make):
    """The seeds are set; which element gets which draw is up to the threads."""
    workers = make.option("workers", 4)

    def program():
        tf1.set_random_seed(7)
        draw = lambda i: tf.random.uniform((256,), seed=3)
        elements = tf.data.Dataset.range(256)
        return whole(elements.map(draw, num_parallel_calls=workers) if workers > 1 else elements.map(draw), 256)
    return make.program(program)


@case("tf-data-unordered", modes=("eager", "session"), unplaced=PIPELINE)
def unordered_map(make):
    ordered = make.option("ordered", 0)
    return make.program(lambda: whole(with_order(
        tf.data.Dataset.range(32).map(dawdle, num_parallel_calls=4), ordered), 32))


@case("tf-data-unordered", modes=("eager", "session"), unplaced=PIPELINE)
def unordered_interleave(make):
    """TensorFlow 2.0.0 itself may crash here: its interleave, no Python among the elements."""
    ordered = make.option("ordered", 0)
    shard = lambda i: tf.data.Dataset.range(100 * i, 100 * i + 100)
    return make.program(lambda: whole(with_order(tf.data.Dataset.range(8).interleave(
        shard, cycle_length=4, block_length=1, num_parallel_calls=4), ordered), 800))


class Batches(getattr(tf.keras.utils, "PyDataset", tf.keras.utils.Sequence)):
    """32 batches, noise added by NumPy: one generator shared by all workers."""

    def start(self):
        self.random = np.random.RandomState(1)
        return self

    def __len__(self):
        return 32

    def __getitem__(self, index):
        time.sleep(ord(os.urandom(1)) / 256000.0)
        return self.random.uniform(-1.0, 1.0, (4, 8)), np.ones((4, 1), "float32")


def fit(model, batches, workers):
    if hasattr(tf.keras.utils, "PyDataset"):  # Keras 3
        batches.workers = workers
        model.fit(batches, shuffle=False, verbose=0)
    elif hasattr(model, "fit_generator"):
        model.fit_generator(batches, shuffle=False, verbose=0, workers=workers)
    else:
        model.fit(batches, shuffle=False, verbose=0, workers=workers)


@case("keras-loader-workers", modes=("host",))
def keras_loader(make):
    workers, weights, made = make.option("workers", 4), make.uniform((8, 1)), []

    def run():
        if not made:
            layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", input_shape=(8,))
            made.append(tf.keras.Sequential([layer]))
            made[0].compile("sgd", "mse")
        made[0].set_weights([weights])
        fit(made[0], Batches().start(), workers)
        return made[0].get_weights()
    return make.host(run)
