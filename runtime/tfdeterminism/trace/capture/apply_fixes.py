"""The application of solutions from outside of a program: before its first line, and when it imports its framework.

In a child process they are applied when it imports the framework.
"""

import random

import numpy

from .. import backends
from ..interpose.import_hook import ImportHook

_SEED = 1
# Keys of solutions that seed: SEED (every generator), KSEED (Keras's), TEOD (enable_op_determinism, which refuses
# random ops without a seed), ED (tfdeterminism.enable_determinism).
_SEEDING_SOLUTIONS = ("SEED", "KSEED", "TEOD", "ED")


def apply(names):
    """Apply solutions. names: keys of those that call functions, see trace/remedies.py."""
    if set(names) & set(_SEEDING_SOLUTIONS):
        random.seed(_SEED)
        numpy.random.seed(_SEED)
    if names:
        imports = ImportHook()
        imports.open()
        imports.add({name: _apply_to(backends.find(name), names) for name in backends.entries()})


def _apply_to(backend, names):
    return lambda module: backend.apply_solutions(module, names)
