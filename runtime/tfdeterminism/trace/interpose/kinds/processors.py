"""The number of processors, which is the same in each run on one machine.

Noted: calls from a line of the user's, or from functions that it calls. Varied: one processor; the process may also
use only one. Cannot be varied: what C code reads from the system's files. Example: ``DataLoader(data,
num_workers=os.cpu_count())``.
"""

import os

from .base import Kind

_CALLS = ("cpu_count", "process_cpu_count")  # the second came with Python 3.13


class Processors(Kind):
    name, label = "processors", "the number of processors"
    has_pin, constant = False, True

    def open(self):
        for name in _CALLS:
            if hasattr(os, name):
                self.replace(os, name, None, varied=lambda seed, original: 1)
