"""The seeds of every generator that a training program uses: Python, NumPy, TensorFlow, Keras."""

import operator
import random
import sys

from . import detect


def check_seed(seed):
    """The seed as an int, NumPy's too: TypeError for what is none, ValueError for one that NumPy does not take."""
    given = seed
    try:
        seed = operator.index(given)
    except TypeError:
        seed = None
    if seed is None or type(given).__name__ in ("bool", "bool_"):  # NumPy's is either
        raise TypeError("a seed is an int, not {!r}".format(given))
    if not 0 <= seed < 2 ** 32:
        raise ValueError("a seed is 0 or more and less than 2**32 (NumPy takes no other), not {}".format(seed))
    return seed


def set_seeds(seed):
    # type: (int) -> list[str]
    """Seed Python, NumPy, TensorFlow and Keras; the names of what was seeded.

    In TensorFlow 1 graphs the seed holds for the current default graph: call it again in each new one.
    """
    seed = check_seed(seed)
    tf = detect.tensorflow()
    random.seed(seed)
    import numpy  # TensorFlow brings it
    numpy.random.seed(seed)
    getattr(tf.compat, "v1", tf).set_random_seed(seed)
    done = ["Python", "NumPy", "TensorFlow"]
    return done + ["Keras"] * _seed_keras(tf, seed)


def _seed_keras(tf, seed):
    """Keras 3 and tf.keras since 2.7 have generators of their own; was there one?"""
    seeded = False
    for utils in _keras_utilities(tf):
        if hasattr(utils, "set_random_seed"):
            utils.set_random_seed(seed)
            seeded = True
    return seeded


def _keras_utilities(tf):
    """tf.keras, and a Keras that the program imported by itself."""
    try:
        found = [tf.keras.utils]
    except (ImportError, AttributeError):  # TensorFlow 2.16 and later run without Keras installed
        found = []
    own = getattr(sys.modules.get("keras"), "utils", None)
    return found + [own] * (own is not None and own not in found)
