"""What an exception of JAX means: raises, unsupported or crashed."""

import re

from tfdet_probe.frameworks.base import by_words

# XLA's words for what it has no deterministic form of.
_DETERMINISM = re.compile(r"[Dd]eterministic (ops|implementation)|not deterministic|nondeterministic")
_NO_KERNEL = re.compile(r"UNIMPLEMENTED|is not on the virtual GPU")


def classify(error):
    return by_words(error, _DETERMINISM, _NO_KERNEL)
