"""Uninitialized memory: read before the program wrote it.

Pinned: everywhere by glibc, which fills what it gives, without its cache of small pieces per thread; at a line what
NumPy or the framework gives there is filled with zeros. Cannot be pinned: memory of other allocators. Example:
``torch.empty(3)``, read before it is written.
"""

import os

from .base import Kind, nothing

_FILL = "glibc.malloc.perturb=170:glibc.malloc.tcache_count=0"


class Memory(Kind):
    name, words = "memory", "uninitialized memory"
    environment = {"GLIBC_TUNABLES": _FILL}

    def open(self):
        self.note("-", "process", None, "perturb" in os.environ.get("GLIBC_TUNABLES", ""))
        self.interposer.imports.add({"numpy": lambda module: self.fill(module, ("empty", "empty_like"))})

    def fill(self, owner, names):
        """What these functions give to the user's lines is filled with zeros where the pin holds."""
        for name in names:
            if hasattr(owner, name):
                self.replace(owner, name, _filled, nothing, unless=self.is_called_by_library)


def _filled(place, original, *args, **kwargs):
    given = original(*args, **kwargs)
    given.zero_() if hasattr(given, "zero_") else given.fill(0)
    return given
