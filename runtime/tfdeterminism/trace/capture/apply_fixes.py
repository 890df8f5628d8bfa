"""Takes advice for a program without changing it: before its first line, and as soon as it has imported its framework.

In a process that the program starts, when it imports that.
"""

import random

import numpy

from ... import enable_determinism, patch
from .import_hook import AfterImport

_SEED = 1
_SEEDED = ("SEED", "KSEED", "TEOD", "ED")


def apply(names):
    """names: of remedies that have something to call, see the remedies module."""
    if set(names) & set(_SEEDED):
        random.seed(_SEED)
        numpy.random.seed(_SEED)
    if names:
        imports = AfterImport()
        imports.open()
        imports.add({"tensorflow": lambda tensorflow: _with_tensorflow(tensorflow, names),
                     "torch": lambda torch: _with_torch(torch, names)})


def _with_tensorflow(tensorflow, names):
    if "TDP" in names:
        patch()
    if "TEOD" in names:
        tensorflow.config.experimental.enable_op_determinism()
    if "ED" in names:
        enable_determinism()
    if set(names) & set(_SEEDED):
        from .tensorflow import seeding
        seeding.seed(_SEED)
    if "KSEED" in names:
        tensorflow.keras.utils.set_random_seed(_SEED)


def _with_torch(torch, names):
    if "UDA" in names:
        torch.use_deterministic_algorithms(True)
    if "SEED" in names:
        torch.manual_seed(_SEED)
