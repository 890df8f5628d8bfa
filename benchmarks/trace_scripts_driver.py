"""Run a public training script unchanged on small synthetic data: python trace_scripts_driver.py SCRIPT FAULT.

This program runs in the environment. It replaces the script's data by synthetic data, and ends it after a few training
steps. FAULT is planted outside of the script: "data" (one input value is random in each run), "order" (rows have the
order of a set of strings), "clock" (the data contains the time), "seeds" (no seed is set); "none"; "unfused": no fault,
and TensorFlow's graph optimizer does not fuse ops.
"""

import os
import random
import runpy
import sys
import time
import types

import numpy

STEPS = 12  # runs of a session or batches of a fit, after which a script is ended
ROWS = 64


def main(script, fault):
    if fault != "seeds":
        random.seed(1)
        numpy.random.seed(1)
    import tensorflow as tf

    if fault != "seeds":
        tf.compat.v1.set_random_seed(1)
    if tf.__version__ >= "2":
        if fault == "unfused":
            tf.config.optimizer.set_experimental_options({"remapping": False, "arithmetic_optimization": False})
        _prepare_keras(tf, fault)
    else:
        _limit_sessions(tf, fault == "unfused")
        _replace_tutorial_data(fault)
    _replace_matplotlib()
    sys.argv[:] = [script]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name="__main__")


def _spoiled(rows, fault):
    """Return input rows with the fault planted."""
    if fault == "data":
        rows.flat[rows.size // 3] += os.urandom(1)[0] % 100 + 1
    elif fault == "clock":
        rows.flat[rows.size // 3] += int(time.time() * 1000) % 97 + 1
    elif fault == "order":
        rows = rows[[int(text[1:]) for text in {f"w{number}" for number in range(len(rows))}]]
    return rows


def _images(size, classes, fault, shape):
    generator = numpy.random.RandomState(7)
    rows = _spoiled(generator.randint(0, 256, (size, *shape)).astype("uint8"), fault)
    return rows, generator.randint(0, classes, size)


def _word_indices(size, classes, fault):
    generator = numpy.random.RandomState(7)
    rows = _spoiled(generator.randint(1, 90, (size, 40)), fault)
    return numpy.array([row.tolist() for row in rows] + [[1]], dtype=object)[:-1], generator.randint(0, classes, size)


def _prepare_keras(tf, fault):
    import keras

    if fault != "seeds":
        keras.utils.set_random_seed(1)
    _replace_data(keras.datasets.mnist, lambda planted_fault: _images(ROWS, 10, planted_fault, (28, 28)), fault)
    _replace_data(keras.datasets.imdb, lambda planted_fault: _word_indices(ROWS, 2, planted_fault), fault)
    original_fit = keras.Model.fit

    def limited_fit(model, *args, **kwargs):
        return original_fit(model, *args, **dict(kwargs, epochs=min(kwargs.get("epochs", 1), 2)))

    keras.Model.fit = limited_fit


def _replace_data(module, make_data, fault):
    module.load_data = lambda *args, **kwargs: (make_data(fault), make_data("none"))


def _limit_sessions(tf, unfused):
    """Make a script exit after STEPS runs of a session."""
    original_run, runs, original_init = tf.Session.run, [], tf.Session.__init__

    def init_unfused(session, target="", graph=None, config=None):
        config = config or tf.ConfigProto()
        config.graph_options.rewrite_options.remapping = 2  # off
        config.graph_options.rewrite_options.arithmetic_optimization = 2
        original_init(session, target, graph, config)

    if unfused:
        tf.Session.__init__ = init_unfused

    def counted_run(session, *args, **kwargs):
        runs.append(True)
        if len(runs) > STEPS:
            tf.Session.run = original_run
            raise SystemExit(0)
        return original_run(session, *args, **kwargs)

    tf.Session.run = counted_run


def _replace_tutorial_data(fault):
    from tensorflow.examples.tutorials.mnist import input_data

    class Part:
        def __init__(self, one_hot):
            images, labels = _images(ROWS * 4, 10, fault, (784,))
            self.images = images.astype("float32") / 255
            self.labels = numpy.eye(10)[labels] if one_hot else labels
            self.num_examples, self._at = len(labels), 0

        def next_batch(self, size):
            self._at += size
            chosen = numpy.arange(self._at - size, self._at) % self.num_examples
            return self.images[chosen], self.labels[chosen]

    class Data:
        pass

    def read_data_sets(folder, one_hot=False, **ignored):
        data_sets = Data()
        data_sets.train, data_sets.test, data_sets.validation = Part(one_hot), Part(one_hot), Part(one_hot)
        return data_sets

    input_data.read_data_sets = read_data_sets


def _replace_matplotlib():
    for name in ("matplotlib", "matplotlib.pyplot"):
        sys.modules.setdefault(name, types.ModuleType(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
