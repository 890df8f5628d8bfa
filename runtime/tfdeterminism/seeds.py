"""Seed the random generators of a training program: Python, NumPy, TensorFlow, Keras."""

import operator
import random
import sys

from . import detect


def check_seed(seed):
    """Check a seed, and return it as an int.

    Args:
        seed: an int from 0 to 2**32 - 1 (NumPy's range), also a NumPy integer.

    Returns:
        The seed as an int.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is out of range.
    """
    original_seed = seed
    try:
        seed = operator.index(original_seed)
    except TypeError:
        seed = None
    if seed is None or type(original_seed).__name__ in ("bool", "bool_"):  # NumPy has both names
        raise TypeError("a seed is an int, not {!r}".format(original_seed))
    if not 0 <= seed < 2 ** 32:
        raise ValueError("a seed is 0 or more and less than 2**32 (NumPy takes no other), not {}".format(seed))
    return seed


def set_seeds(seed):
    # type: (int) -> list[str]
    """Seed Python, NumPy, TensorFlow and Keras.

    In TensorFlow 1 the graph-level seed belongs to the default graph: call this again in each new graph.

    Args:
        seed: an int from 0 to 2**32 - 1.

    Returns:
        The names of what was seeded.
    """
    seed = check_seed(seed)
    tf = detect.import_tensorflow()
    random.seed(seed)
    import numpy  # TensorFlow brings it
    numpy.random.seed(seed)
    getattr(tf.compat, "v1", tf).set_random_seed(seed)
    names = ["Python", "NumPy", "TensorFlow"]
    return names + ["Keras"] * _seed_keras(tf, seed)


def _seed_keras(tf, seed):
    """Seed the generators of Keras 3 and of tf.keras since 2.7; return whether there were any."""
    is_seeded = False
    for utils in _keras_utilities(tf):
        if hasattr(utils, "set_random_seed"):
            utils.set_random_seed(seed)
            is_seeded = True
    return is_seeded


def _keras_utilities(tf):
    """Return the utils of tf.keras, and of a Keras that the program has imported separately."""
    try:
        utilities = [tf.keras.utils]
    except (ImportError, AttributeError):  # TensorFlow 2.16 and later run without Keras installed
        utilities = []
    keras_utils = getattr(sys.modules.get("keras"), "utils", None)
    return utilities + [keras_utils] * (keras_utils is not None and keras_utils not in utilities)
