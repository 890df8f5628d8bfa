"""Uninitialized memory, which a program reads before it has written it.

Pinned: everywhere by glibc, which fills new memory, without its cache of small pieces per thread; at a line by filling
the arrays that NumPy or the framework returns there with zeros. Cannot be pinned: memory of other allocators. Example:
``torch.empty(3)``, read before it is written.
"""

import os

from .base import Kind, no_value

_FILL = "glibc.malloc.perturb=170:glibc.malloc.tcache_count=0"


class Memory(Kind):
    name, label = "memory", "uninitialized memory"
    environment = {"GLIBC_TUNABLES": _FILL}

    def open(self):
        # At no line, for the whole process, without a value, and whether it is pinned.
        self.note("-", "process", None, "perturb" in os.environ.get("GLIBC_TUNABLES", ""))
        self.interposer.imports.add({"numpy": lambda module: self.fill(module, ("empty", "empty_like"), "fill", 0)})

    def fill(self, owner, names, method, *arguments):
        """Fill the arrays that these functions return to the user's lines with zeros where the pin holds.

        method, arguments: the call of an array that does so.
        """
        def call_and_zero(place, original, *args, **kwargs):
            array = original(*args, **kwargs)
            getattr(array, method)(*arguments)
            return array

        for name in names:
            if hasattr(owner, name):
                self.replace(owner, name, call_and_zero, no_value, unless=self.is_called_by_library)
