"""Which files the program's own lines open, and what lay there when they were first read."""

import builtins
import hashlib
import io
import os
import stat
import sys
import tempfile
import threading

from ...wrap import Wrappers
from . import user_frames

_MOST = 256              # files that are looked at
_WHOLE = 1 << 20         # bytes; of larger files so many are read, in pieces
_PIECES = 16
_CODE = (".py", ".pyc")  # a program that is another one is told of elsewhere
_TRACES = (".tfdt", ".npz")
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_FRAMES = 4              # of whom the reading line is called by
_watching, _hooked = [], []  # Python keeps what is added to hear it: one function for all


class FileAccesses(object):
    """defined(): how many ops are known so far; folder: of the trace, whose own files are no input. Thread-safe."""

    def __init__(self, defined, folder):
        self._defined = defined
        self._folder = os.path.abspath(folder)
        self._lock = threading.Lock()
        self._local = threading.local()
        self._known = {}
        self._wrappers = Wrappers()

    def open(self):
        _watching.append(self)
        add_hook = getattr(sys, "addaudithook", None)  # Python 3.8 and later
        if add_hook is not None:
            if not _hooked:
                add_hook(_heard)
                _hooked.append(True)
        else:
            for module in (builtins, io):
                self._wrappers.wrap(module, "open", self._opens)

    def close(self):
        if self in _watching:
            _watching.remove(self)
        self._wrappers.undo()

    def on_fork(self):
        """In a fork, which another thread's lock must not hold up: what it opens is its own."""
        self._lock, self._known = threading.Lock(), {}

    def as_json(self):
        """For the end of a trace, as causes.files_read reads it."""
        folder = tempfile.gettempdir()  # not while a file is opened: tempfile may be opening it, and holds its lock
        with self._lock:
            return [dict(one, temporary=_lies_in(folder, path)) for path, one in sorted(self._known.items())]

    def _opens(self, original, file, mode="r", *args, **kwargs):
        flags = os.O_RDWR if "+" in mode else os.O_RDONLY if "r" in mode else os.O_WRONLY
        self.on_open(file, flags | (os.O_TRUNC if "w" in mode else 0))
        return original(file, mode, *args, **kwargs)

    def on_open(self, path, flags):
        """A file is about to be opened."""
        if getattr(self._local, "busy", False) or isinstance(path, int):
            return
        self._local.busy = True
        try:
            self._note(os.path.abspath(os.fsdecode(path)), flags)
        except (OSError, ValueError, TypeError):
            pass  # whatever is wrong with it, the program hears of it
        finally:
            self._local.busy = False

    def _note(self, path, flags):
        stack = user_frames.stack_of_caller()
        if not stack or path.endswith(_CODE) or path.startswith(_SYSTEM) or not user_frames.is_user(path):
            return
        if os.path.dirname(path) == self._folder and path.endswith(_TRACES):
            return  # a fork looks at what its parent wrote
        with self._lock:
            one = self._known.get(path)
            if one is None:
                if len(self._known) >= _MOST:
                    return
                one = self._known[path] = {"path": path, "reads": None, "changed": None, "by": None, "writes": None,
                                           "own": False, "defined": 0}
            access = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
            if access != os.O_WRONLY and not flags & os.O_TRUNC and one["reads"] is None:
                self._read(one, stack)
            if access != os.O_RDONLY and one["writes"] is None:
                one["writes"] = stack[:1]

    def _read(self, one, stack):
        try:
            about = os.stat(one["path"])
            if stat.S_ISREG(about.st_mode):
                one.update(reads=_digest(one["path"], about.st_size), changed=about.st_mtime, by=stack[:_FRAMES],
                           own=one["writes"] is not None, defined=self._defined())
        except (IOError, OSError):
            pass  # it is about to be made, or may not be read


def _heard(event, arguments):
    if event == "open" and _watching:
        for one in list(_watching):
            one.on_open(arguments[0], arguments[2] or 0)


def _lies_in(folder, path):
    return path.startswith((os.path.realpath(folder) + os.sep, os.path.abspath(folder) + os.sep))


def _digest(path, size):
    """Of its length and of what lies in it, of a large one in some places of it."""
    found = hashlib.sha1(str(size).encode("ascii"))
    with io.open(path, "rb") as source:
        if size <= _WHOLE:
            found.update(source.read())
        else:
            for number in range(_PIECES):
                source.seek((size - _WHOLE // _PIECES) * number // (_PIECES - 1))
                found.update(source.read(_WHOLE // _PIECES))
    return found.hexdigest()
