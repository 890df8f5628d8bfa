"""Runs a public training script as it is, on small synthetic data: python trace_scripts_driver.py SCRIPT FAULT.

Runs in the environment. What the script would load is made from numbers here, and it ends after a few training steps.
FAULT is planted outside of the script: "data" (one value that is fed is drawn anew in each run), "order" (rows come in
the order of a set of words), "clock" (the time is in the data), "seeds" (none is set); "none"; "unfused": none, and
TensorFlow's graph optimizer fuses nothing.
"""

import os
import random
import runpy
import sys
import time
import types

import numpy

STEPS = 12  # after so many runs of a session or batches of a fit the script has shown what it does
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
        _keras(tf, fault)
    else:
        _sessions(tf, fault == "unfused")
        _tutorial_data(fault)
    _no_pictures()
    sys.argv[:] = [script]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name="__main__")


def _spoiled(rows, fault):
    """What is fed, with the fault in it."""
    if fault == "data":
        rows.flat[rows.size // 3] += os.urandom(1)[0] % 100 + 1
    elif fault == "clock":
        rows.flat[rows.size // 3] += int(time.time() * 1000) % 97 + 1
    elif fault == "order":
        rows = rows[[int(word[1:]) for word in {f"w{number}" for number in range(len(rows))}]]
    return rows


def _images(size, classes, fault, shape):
    numbers = numpy.random.RandomState(7)
    rows = _spoiled(numbers.randint(0, 256, (size, *shape)).astype("uint8"), fault)
    return rows, numbers.randint(0, classes, size)


def _words(size, classes, fault):
    numbers = numpy.random.RandomState(7)
    rows = _spoiled(numbers.randint(1, 90, (size, 40)), fault)
    return numpy.array([row.tolist() for row in rows] + [[1]], dtype=object)[:-1], numbers.randint(0, classes, size)


def _keras(tf, fault):
    import keras

    if fault != "seeds":
        keras.utils.set_random_seed(1)
    _loads(keras.datasets.mnist, lambda how: _images(ROWS, 10, how, (28, 28)), fault)
    _loads(keras.datasets.imdb, lambda how: _words(ROWS, 2, how), fault)
    fit = keras.Model.fit

    def short(model, *args, **kwargs):
        return fit(model, *args, **dict(kwargs, epochs=min(kwargs.get("epochs", 1), 2)))

    keras.Model.fit = short


def _loads(module, made, fault):
    module.load_data = lambda *args, **kwargs: (made(fault), made("none"))


def _sessions(tf, unfused):
    """A script ends itself once it has trained for a while."""
    run, counted, made = tf.Session.run, [], tf.Session.__init__

    def plain(session, target="", graph=None, config=None):
        config = config or tf.ConfigProto()
        config.graph_options.rewrite_options.remapping = 2  # off
        config.graph_options.rewrite_options.arithmetic_optimization = 2
        made(session, target, graph, config)

    if unfused:
        tf.Session.__init__ = plain

    def counting(session, *args, **kwargs):
        counted.append(True)
        if len(counted) > STEPS:
            tf.Session.run = run
            raise SystemExit(0)
        return run(session, *args, **kwargs)

    tf.Session.run = counting


def _tutorial_data(fault):
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
        found = Data()
        found.train, found.test, found.validation = Part(one_hot), Part(one_hot), Part(one_hot)
        return found

    input_data.read_data_sets = read_data_sets


def _no_pictures():
    for name in ("matplotlib", "matplotlib.pyplot"):
        sys.modules.setdefault(name, types.ModuleType(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
