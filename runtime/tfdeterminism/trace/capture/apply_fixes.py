"""Applies solutions to a program without changing it: before its first line, and after it imports its framework.

In a process that the program starts, when it imports that.
"""

import random

import numpy

from .. import backends
from ..interpose.import_hook import ImportHook

_SEED = 1
_SEEDING_SOLUTIONS = ("SEED", "KSEED", "TEOD", "ED")


def apply(names):
    """names: keys of solutions that have something to call, see the remedies module."""
    if set(names) & set(_SEEDING_SOLUTIONS):
        random.seed(_SEED)
        numpy.random.seed(_SEED)
    if names:
        imports = ImportHook()
        imports.open()
        imports.add({name: _apply_to(backends.find(name), names) for name in backends.entries()})


def _apply_to(backend, names):
    return lambda module: backend.apply_solutions(module, names)
