"""The order in which the file system lists a folder.

Pinned: os.listdir and os.scandir, and with them glob and pathlib, return names in sorted order. Varied: shuffled.
Cannot be pinned: what `ls`, `find` and C code list. Example: ``for name in os.listdir(folder)``.
"""

import os
import zlib

from .base import Kind, no_value


class _Entries(object):
    """The entries of os.scandir in a fixed order."""

    def __init__(self, entries, key):
        self._entries, self.close = iter(sorted(entries, key=lambda entry: key(entry.name))), entries.close

    def __iter__(self):
        return self._entries

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Listing(Kind):
    name, label, coarseness = "listing", "the order in which the file system lists a folder", 0

    def open(self):
        # Arguments: the function, its result where it is pinned, what the ledger keeps of it, and its varied result.
        self.replace(
            os,
            "listdir",
            lambda place, original, *args, **kwargs: sorted(original(*args, **kwargs)),
            lambda names: names[:50],
            varied=lambda seed, original, *args, **kwargs: sorted(original(*args, **kwargs), key=_shuffling_key(seed)),
        )
        self.replace(
            os,
            "scandir",
            lambda place, original, *args, **kwargs: _Entries(original(*args, **kwargs), _identity),
            no_value,
            varied=lambda seed, original, *args, **kwargs: _Entries(original(*args, **kwargs), _shuffling_key(seed)),
        )


def _identity(name):
    return name


def _shuffling_key(seed):
    """Return a sort key that shuffles names, always in the same way for one seed."""
    return lambda name: zlib.crc32("{}|{}".format(seed, os.fsdecode(name)).encode("utf-8", "surrogateescape"))
