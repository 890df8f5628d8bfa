"""Files that an earlier run left.

Pinned: from outside, each run begins with the same files (search/program_copy.py). Noted: which files the user's lines
read, write and ask for, and which folders they list. A file outside the program's folder is copied before it is first
written, for the pin. Of C code, sqlite3 and h5py tell which files they open. Cannot be pinned: files of over 64 MiB
outside of that folder, and those that other C code writes. Example: ``if os.path.exists("cache.npy")``.
"""

import functools
import hashlib
import os
import shutil
import stat
import sys

from .base import Function, Kind

_CALLERS = 3  # maximum of frames between the user's line and os.stat; imports call it for thousands of files
_LARGEST = 64 << 20  # bytes
_DATABASE_FILES = ("", "-wal", "-shm")  # endings of the names of the files of a database
_BYTE_CODE = ".pyc"
_SKIPPED = (".py", _BYTE_CODE, ".so", ".json.part", ".tfdt")  # code, and files of this tool


class Files(Kind):
    name, label = "files", "files that an earlier run left"

    def open(self):
        self._system = tuple(
            {
                sys.prefix + os.sep,
                sys.base_prefix + os.sep,
                "/proc/",
                "/sys/",
                "/dev/",
                self.interposer.settings["out"],  # folder of the ledgers
                self.interposer.settings["kept"],  # folder of the copies
            }
        )
        self.interposer.on_audit_event(["open"], self._on_open)
        self.interposer.on_audit_event(["os.listdir", "os.scandir"], self._on_list)
        self.interposer.on_audit_event(["os.rename"], lambda event, args: self.written(os.fsdecode(args[1])))
        self.interposer.on_audit_event(["sqlite3.connect"], lambda event, args: self._on_database(args[0]))
        self.interposer.imports.add({"h5py._hl.files": self._hook_h5py})
        self._stat = os.stat  # the original, for this module
        os.stat = Function(self._wrapped_stat(os.stat), os.stat, "os", "stat")

    def _wrapped_stat(self, original):
        def call(path, *args, **kwargs):
            if not isinstance(path, (int, bytes)) and self.interposer.is_called_by_user(_CALLERS):
                self._note_access("ask for", str(path))
            return original(path, *args, **kwargs)

        return call

    def _note_access(self, use, path):
        place = self._place_of(path)
        if place:
            self.note(place, "{} {}".format(use, os.path.abspath(path)))

    def _place_of(self, path):
        """Return the user's line that accesses a file or folder; None if it is not a file of the program's."""
        if path.endswith(_SKIPPED) or path.startswith(self._system):
            return None
        place = self.interposer.place()
        return None if place == "-" or "(import)" in place else place

    def _on_open(self, event, args):
        path, mode, flags = args
        if isinstance(path, (str, bytes)):
            self.opened(os.fsdecode(path), _writes(mode, flags))

    def _on_database(self, path):
        name = os.fsdecode(path)
        if name.startswith("file:"):
            name = name[len("file:") :].partition("?")[0]
        for ending in _DATABASE_FILES if name and name != ":memory:" else ():
            self._may_write(name + ending)

    def _hook_h5py(self, module):
        original = module.make_fid

        @functools.wraps(original)
        def make_fid(name, mode, *args, **kwargs):
            path = os.fsdecode(name)
            if path[:1] != "<":  # a file that Python opened
                (self._may_write if mode != "r" else functools.partial(self.opened, writes=False))(path)
            return original(name, mode, *args, **kwargs)

        module.make_fid = make_fid

    def _may_write(self, path):
        """Note a file that C code is about to open; what it reads and writes does not show."""
        self.opened(path, False)
        self.written(path)

    def _on_list(self, event, args):
        path = "." if args[0] is None else args[0]
        if isinstance(path, (str, bytes)):
            self._note_access("list", os.fsdecode(path))

    def opened(self, path, writes):
        """Note a file that is about to be opened."""
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
        """Note a file that is about to be written, by Python or C++."""
        full = os.path.abspath(path)
        is_folder = stat.S_ISDIR(self._mode(full))  # a folder is opened for O_TMPFILE
        if is_folder or full.startswith(self._system) or full.endswith(_BYTE_CODE):
            return
        is_old = self._is_file(full)
        if is_old and not full.startswith(self.interposer.root):
            self._keep(full)
        self.note(self.interposer.place(), "write " + full, "old" if is_old else "new")

    def _keep(self, path):
        """Copy a file before the first run that writes it."""
        copy_path = kept_path(self.interposer.settings["kept"], path)
        try:
            if not self._is_file(copy_path) and self._stat(path).st_size <= _LARGEST:
                partial = "{}.{}".format(copy_path, os.getpid())
                with self.interposer.without_notes():
                    shutil.copy2(path, partial)
                os.replace(partial, copy_path)
        except OSError:
            pass  # it cannot be pinned


def kept_path(folder, path):
    """Return the path of the copy of a file outside the program's folder."""
    return os.path.join(folder, hashlib.sha1(os.fsencode(path)).hexdigest())


def _writes(mode, flags):
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
