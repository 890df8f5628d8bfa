"""Apply a solution inside a fresh process, before the first op."""

import os

# Which of its kernels TensorFlow takes on a CPU: no solution, but the caller's choice, and every record names it.
CALLERS = ("TF_ENABLE_ONEDNN_OPTS",)


def environment(solution):
    """The determinism-related variables that are set under `solution`, an entry of plan["solutions"]."""
    ours = {name: os.environ[name] for name in CALLERS if os.environ.get(name)}
    return dict(ours, **solution.get("env") or {})


class NotHere(Exception):
    """This TensorFlow has no such switch."""


class Settings(object):
    """What a solution asks of the process.  Built from one entry of plan["solutions"]."""

    def __init__(self, solution):
        self.key = solution["key"]
        self.options = solution.get("options") or {}
        self.threads = solution.get("threads")
        self._env = solution.get("env") or {}
        self._call = solution.get("call")
        self._seed = solution.get("seed")
        self.replaced = frozenset()  # sources whose ops this solution replaces here, once it is applied

    def apply(self, determinism_variables):
        """Set this solution's variables, and unset every other determinism-related one."""
        for name in determinism_variables:
            os.environ.pop(name, None)
        os.environ.update(self._env)
        if self._call:
            self.replaced = frozenset(_CALLS[self._call]() or ())

    def before_repeat(self):
        """Seeds, if the solution sets them: each repeat starts from the same state."""
        if self._seed is not None:
            _SEEDERS.get(self._call, _set_seeds)(self._seed)


def _enable_op_determinism():
    import tensorflow as tf
    config = getattr(tf, "config", None)  # 1.13 has no tf.config
    switch = getattr(getattr(config, "experimental", None), "enable_op_determinism", None)
    if switch is None:
        raise NotHere("tf.config.experimental.enable_op_determinism came with TensorFlow 2.8")
    switch()


def _set_seeds(seed):
    import random

    import numpy
    import tensorflow as tf
    random.seed(seed)
    numpy.random.seed(seed)
    tf.compat.v1.set_random_seed(seed)


def _set_keras_seeds(seed):
    import tensorflow as tf
    if not hasattr(tf.keras.utils, "set_random_seed"):
        raise NotHere("tf.keras.utils.set_random_seed came with TensorFlow 2.7")
    tf.keras.utils.set_random_seed(seed)


def _patch():
    import tfdeterminism
    tfdeterminism.patch()
    return ["bias-add-backprop"]


def _enable_determinism():
    """Without the seed: before_repeat() sets it, and in 1.x eager execution could not be switched on after it."""
    import tfdeterminism
    return tfdeterminism.enable_determinism().covered


def _set_all_seeds(seed):
    import tfdeterminism
    tfdeterminism.set_seeds(seed)


def _nothing():
    pass


_CALLS = {"enable_op_determinism": _enable_op_determinism, "keras_set_random_seed": _nothing,
          "patch": _patch, "enable_determinism": _enable_determinism}
_SEEDERS = {"keras_set_random_seed": _set_keras_seeds, "enable_determinism": _set_all_seeds}
