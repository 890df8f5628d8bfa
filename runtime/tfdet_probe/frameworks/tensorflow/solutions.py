"""The calls and seeds that are solutions in TensorFlow: each makes some sources of nondeterminism deterministic."""

from tfdet_probe.base.errors import SolutionUnavailableError


def apply(call):
    """Make a solution's call, before the first op; return the sources whose ops it replaced, or None."""
    return _CALLS[call]()


def seed(call, number):
    """Set the seeds, in the way of the solution with this call (or None)."""
    _SEEDERS.get(call, _set_seeds)(number)


def _enable_op_determinism():
    import tensorflow as tf
    config = getattr(tf, "config", None)  # 1.13 has no tf.config
    switch = getattr(getattr(config, "experimental", None), "enable_op_determinism", None)
    if switch is None:
        raise SolutionUnavailableError("tf.config.experimental.enable_op_determinism came with TensorFlow 2.8")
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
        raise SolutionUnavailableError("tf.keras.utils.set_random_seed came with TensorFlow 2.7")
    tf.keras.utils.set_random_seed(seed)


def _patch():
    import tfdeterminism
    tfdeterminism.patch()
    return ["bias-add-backprop"]


def _enable_determinism():
    """Without the seed: seed() sets it; in 1.x, eager execution cannot be enabled after a seed is set."""
    import tfdeterminism
    return tfdeterminism.enable_determinism().patched_sources


def _set_all_seeds(seed):
    import tfdeterminism
    tfdeterminism.set_seeds(seed)


def _nothing():
    pass


_CALLS = {"enable_op_determinism": _enable_op_determinism, "keras_set_random_seed": _nothing,
          "patch": _patch, "enable_determinism": _enable_determinism}
_SEEDERS = {"keras_set_random_seed": _set_keras_seeds, "enable_determinism": _set_all_seeds}
