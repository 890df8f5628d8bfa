"""Files that an earlier run left.

Pinned: from outside, each run begins with the files as they were (search/program_copy.py). Noted: which files lines
of the user's read, write and ask for, and which folders they list. A file outside the program's folder is kept before
it is first written, for the pin. Cannot be pinned: such files of over 64 MiB, and those that C code writes. Example:
``if os.path.exists("cache.npy")``.
"""

import hashlib
import os
import shutil
import stat
import sys

from .base import Function, Kind

_CALLERS = 3  # frames between the user's line and os.stat at most: imports look at thousands of files
_LARGEST = 64 << 20  # bytes
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
                self.interposer.told["kept"],
            }
        )
        self.interposer.hear(["open"], self._opens)
        self.interposer.hear(["os.listdir", "os.scandir"], self._lists)
        self.interposer.hear(["os.rename"], lambda event, args: self.written(os.fsdecode(args[1])))
        self._stat = os.stat  # for what we ask ourselves
        os.stat = Function(self._wrapped_stat(os.stat), os.stat, "os", "stat")

    def _wrapped_stat(self, original):
        def call(path, *args, **kwargs):
            if not isinstance(path, (int, bytes)) and self.interposer.is_called_by_user(_CALLERS):
                self._asked("ask for", str(path))
            return original(path, *args, **kwargs)

        return call

    def _asked(self, what, path):
        place = self._place_of(path)
        if place:
            self.note(place, "{} {}".format(what, os.path.abspath(path)))

    def _place_of(self, path):
        """The user's line that asks for a file or folder; None for one that is no file of the program's."""
        if path.endswith(_SKIPPED) or path.startswith(self._system):
            return None
        place = self.interposer.place()
        return None if place == "-" or "(import)" in place else place

    def _opens(self, event, args):
        path, mode, flags = args
        if isinstance(path, (str, bytes)):
            self.opened(os.fsdecode(path), _writes(mode, flags))

    def _lists(self, event, args):
        path = "." if args[0] is None else args[0]
        if isinstance(path, (str, bytes)):
            self._asked("list", os.fsdecode(path))

    def opened(self, path, writes):
        """A file is about to be opened."""
        place = self._place_of(path)
        if not place:
            return
        full = os.path.abspath(path)
        if writes:
            self.written(full)
        elif self._is_file(full):
            self.note(place, "read " + full, self._stat(full).st_size)

    def _is_file(self, path):
        return stat.S_ISREG(self._mode(path))

    def _mode(self, path):
        try:
            return self._stat(path).st_mode
        except (OSError, ValueError):
            return 0

    def written(self, path):
        """A file is about to be written, by Python or by C++."""
        full = os.path.abspath(path)
        if full.startswith(self._system) or stat.S_ISDIR(self._mode(full)):  # it is opened for a file without a name
            return
        is_old = self._is_file(full)
        if is_old and not full.startswith(self.interposer.root):
            self._keep(full)
        self.note(self.interposer.place(), "write " + full, "old" if is_old else "new")

    def _keep(self, path):
        """As it was before the first run that writes it."""
        kept = kept_path(self.interposer.told["kept"], path)
        try:
            if not self._is_file(kept) and self._stat(path).st_size <= _LARGEST:
                part = "{}.{}".format(kept, os.getpid())
                with self.interposer.unnoted():
                    shutil.copy2(path, part)
                os.replace(part, kept)
        except OSError:
            pass  # it cannot be pinned


def kept_path(folder, path):
    """Where a file outside the program's folder is kept."""
    return os.path.join(folder, hashlib.sha1(os.fsencode(path)).hexdigest())


def _writes(mode, flags):
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
