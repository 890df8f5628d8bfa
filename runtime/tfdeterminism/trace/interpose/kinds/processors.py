"""The number of processors: each run on one machine gets the same.

Noted: where a line of the user's asks, or what it calls. Varied: one; the process may use one alone, too.
Cannot be varied: what C code reads from the system's files.
Example: ``DataLoader(data, num_workers=os.cpu_count())``.
"""

import os

from .base import Kind

_CALLS = ("cpu_count", "process_cpu_count")  # the second came with Python 3.13


class Processors(Kind):
    name, words = "processors", "the number of processors"
    pinned, constant = False, True

    def open(self):
        for name in _CALLS:
            if hasattr(os, name):
                self.replace(os, name, None, varied=lambda seed, original: 1)
