"""Files that an earlier run left.

Pinned: from outside, each run begins with the files as they were (search/program_copy.py). Noted: which files lines
of the user's read and write. Cannot be pinned: files outside the program's folder that were there before. Example:
``if os.path.exists("cache.npy")``.
"""

import os
import sys

from .base import Kind

_SKIPPED = (".py", ".pyc", ".so", ".json.part", ".tfdt")


class Files(Kind):
    name, words = "files", "files that an earlier run left"

    def open(self):
        self._system = tuple(
            {
                sys.prefix + os.sep,
                sys.base_prefix + os.sep,
                "/proc/",
                "/sys/",
                "/dev/",
                self.interposer.told["out"],
            }
        )
        if sys.version_info >= (3, 8):
            sys.addaudithook(self._heard)  # novm

    def _heard(self, event, args):
        if event == "open":
            path, mode, flags = args
            if isinstance(path, (str, bytes)):
                self.opened(os.fsdecode(path), _writes(mode, flags))
        elif event == "os.rename":
            self.written(os.fsdecode(args[1]))

    def opened(self, path, writes):
        """A file is about to be opened."""
        if path.endswith(_SKIPPED) or path.startswith(self._system):
            return
        place = self.interposer.place()
        if place == "-" or "(import)" in place:
            return
        full = os.path.abspath(path)
        if writes:
            self.written(full)
        elif os.path.isfile(full):
            self.note(place, "read " + full, _size(full))

    def written(self, path):
        """A file is about to be written, by Python or by C++."""
        full = os.path.abspath(path)
        self.note(self.interposer.place(), "write " + full, "old" if os.path.exists(full) else "new")


def _writes(mode, flags):
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def _size(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return None
