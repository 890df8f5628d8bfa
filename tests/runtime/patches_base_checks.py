"""Shared by the checks of patches: inputs, variables, and installing and removing this version's patches."""

import os
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tfdeterminism.patches import PATCHES, Replacements  # noqa: E402

tf1 = getattr(tf.compat, "v1", tf)
tf1.logging.set_verbosity("ERROR")
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
APPLY = [patch for patch in PATCHES.values() if patch.applies(VERSION)]
KEYS = set(patch.key for patch in APPLY)


def random(shape, dtype="float32"):
    """Return random numbers, equal in every call."""
    return tf.constant(np.random.RandomState(3).uniform(0.1, 1, shape).astype(dtype))


def ints(high, shape, dtype="int32"):
    """Return random integers below `high`, equal in every call."""
    return tf.constant(np.random.RandomState(4).randint(0, high, shape).astype(dtype))


def raw(module, name):
    """Return a function of a module of tensorflow.python.ops."""
    return getattr(__import__("tensorflow.python.ops." + module, fromlist=[module]), name)


def grad(function, *inputs):
    """Return the outputs, and dense gradients to every input."""
    outputs = function(*inputs)
    grads = tf1.gradients(outputs * tf.ones_like(outputs) * 2, list(inputs))
    return [outputs] + [tf.convert_to_tensor(gradient) for gradient in grads if gradient is not None]


def variable(resource=True):
    """Return a variable of ones; resource: of the newer kind of TensorFlow."""
    return tf1.Variable(np.ones((3, 2), "float32"), use_resource=resource)


class patched(object):
    """A context manager: installs the patches of these keys, by default all of this version; restores on exit."""
    def __init__(self, *keys):
        self._keys, self._all = keys, []

    def __enter__(self):
        for key in self._keys or [patch.key for patch in APPLY]:
            self._all.append(Replacements())
            self._all[-1].install(PATCHES[key])
        return self._all

    def __exit__(self, *error):
        for replacement in reversed(self._all):
            replacement.restore()
