"""The files that the program's own lines open, with the digest of their content when they were first read."""

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

_MOST = 256              # maximum number of files
_WHOLE = 1 << 20         # bytes of a file that are read; of a larger file they are spread over pieces
_PIECES = 16
_CODE = (".py", ".pyc")  # changes of the program itself are reported elsewhere
_TRACES = (".tfdt", ".npz")
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_FRAMES = 4              # frames that are kept of the stack of a read
_watching, _hooked = [], []  # an audit hook cannot be removed: one function serves all recorders


class FileAccesses(object):
    """The recorder of opened files. Thread-safe.

    defined(): returns the number of ops defined so far; folder: of the trace, whose own files are not recorded.
    """

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
                add_hook(_on_audit_event)
                _hooked.append(True)
        else:
            for module in (builtins, io):
                self._wrappers.wrap(module, "open", self._opens)

    def close(self):
        if self in _watching:
            _watching.remove(self)
        self._wrappers.undo()

    def on_fork(self):
        """Reset in a fork, where another thread's lock may be held for ever."""
        self._lock, self._known = threading.Lock(), {}

    def as_json(self):
        """Return a list of dicts for the end of a trace, which causes.files_read reads.

        path; reads: digest of the content at the first read, or None; changed: the file's time of modification then, in
        seconds since 1970; by: the stack of that read; own: whether this program had written it before; writes: the
        program's line that first wrote it, or None; defined: the number of ops defined before that read; temporary.
        """
        folder = tempfile.gettempdir()  # not in on_open(): tempfile itself may open the file and hold its own lock
        with self._lock:
            return [dict(access, temporary=_lies_in(folder, path)) for path, access in sorted(self._known.items())]

    def _opens(self, original, file, mode="r", *args, **kwargs):
        flags = os.O_RDWR if "+" in mode else os.O_RDONLY if "r" in mode else os.O_WRONLY
        self.on_open(file, flags | (os.O_TRUNC if "w" in mode else 0))
        return original(file, mode, *args, **kwargs)

    def on_open(self, path, flags):
        """Record a file that is about to be opened."""
        if getattr(self._local, "busy", False) or isinstance(path, int):
            return
        self._local.busy = True
        try:
            self._note(os.path.abspath(os.fsdecode(path)), flags)
        except (OSError, ValueError, TypeError):
            pass  # open() itself reports the invalid arguments
        finally:
            self._local.busy = False

    def _note(self, path, flags):
        stack = user_frames.stack_of_caller()
        if not stack or path.endswith(_CODE) or path.startswith(_SYSTEM) or not user_frames.is_user(path):
            return
        if os.path.dirname(path) == self._folder and path.endswith(_TRACES):
            return  # a trace's own file
        with self._lock:
            file = self._known.get(path)
            if file is None:
                if len(self._known) >= _MOST:
                    return
                file = self._known[path] = {"path": path, "reads": None, "changed": None, "by": None, "writes": None,
                                            "own": False, "defined": 0}
            access = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
            if access != os.O_WRONLY and not flags & os.O_TRUNC and file["reads"] is None:
                self._read(file, stack)
            if access != os.O_RDONLY and file["writes"] is None:
                file["writes"] = stack[:1]

    def _read(self, file, stack):
        try:
            status = os.stat(file["path"])
            if stat.S_ISREG(status.st_mode):
                file.update(reads=_digest(file["path"], status.st_size), changed=status.st_mtime, by=stack[:_FRAMES],
                            own=file["writes"] is not None, defined=self._defined())
        except (IOError, OSError):
            pass  # the file does not exist yet, or may not be read


def _on_audit_event(event, arguments):
    if event == "open" and _watching:
        for accesses in list(_watching):
            accesses.on_open(arguments[0], arguments[2] or 0)


def _lies_in(folder, path):
    return path.startswith((os.path.realpath(folder) + os.sep, os.path.abspath(folder) + os.sep))


def _digest(path, size):
    """Return the digest of a file's size and content; of a large file, of some pieces of its content."""
    hasher = hashlib.sha1(str(size).encode("ascii"))
    with io.open(path, "rb") as source:
        if size <= _WHOLE:
            hasher.update(source.read())
        else:
            for number in range(_PIECES):
                source.seek((size - _WHOLE // _PIECES) * number // (_PIECES - 1))
                hasher.update(source.read(_WHOLE // _PIECES))
    return hasher.hexdigest()
