"""The hash seed: the order of a set of texts, and hash().

Pinned: everywhere by PYTHONHASHSEED; at a line by sorting the sets that it iterates (user_sets.py).
Cannot be pinned: the order of objects without a value of their own, which follows their addresses.
Example: ``for word in set(words)``.
"""

import sys

from .base import Kind


class HashSeed(Kind):
    name, label, coarseness = "hash-seed", "the hash seed (hash(), the order of a set)", 0
    environment = {"PYTHONHASHSEED": "0"}

    def open(self):
        # At no line, for the whole process, without a value, and whether it is pinned.
        self.note("-", "process", None, not sys.flags.hash_randomization)
