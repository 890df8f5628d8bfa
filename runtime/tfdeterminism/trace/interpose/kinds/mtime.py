"""The times at which files were written.

Pinned: os.stat, os.lstat and the entries of os.scandir return times that follow from the names; files that the run has
written are newer than older ones. Varied: random times. Cannot be pinned: fstat, C code. Example:
``max(glob.glob("*.pt"), key=os.path.getmtime)``.
"""

import os
import zlib

from .base import Function, Kind

_FIRST_DAY = 1500000000  # seconds since 1970
_DAY = 86400
_ASKS_NO_TIME = tuple(
    "exists isfile isdir is_file is_dir getsize lexists islink ismount realpath _joinrealpath rmtree".split()
)
_FIELDS = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")  # those before the times
_CALLERS = 3  # maximum of frames between the user's line and os.stat; imports call it for thousands of files


class Mtime(Kind):
    name, label, coarseness = "mtime", "the times at which files were written", 0

    def open(self):
        for name in ("stat", "lstat"):
            original = getattr(os, name)
            setattr(os, name, Function(self._wrap_stat(original), original, "os", name))
        os.scandir = Function(self._wrap_listing(os.scandir), os.scandir, "os", "scandir")

    def _wrap_listing(self, original):
        """Return os.scandir with entries whose times can be pinned, for calls from the user's own lines."""

        def scandir(*args, **kwargs):
            entries = original(*args, **kwargs)
            return _Entries(entries, self._wrap_stat) if self.interposer.is_called_by_user() else entries

        return scandir

    def _asks_for_time(self):
        frame = self.interposer.caller()
        return (
            frame is not None
            and frame.f_code.co_name not in _ASKS_NO_TIME
            and self.interposer.is_called_by_user(_CALLERS)
        )

    def _wrap_stat(self, original):
        def stat(path, *args, **kwargs):
            result = original(path, *args, **kwargs)
            if isinstance(path, (int, bytes)) or not self._asks_for_time():
                return result
            place = self.interposer.place()
            is_held = self.is_pinned(place)
            self.note(place, "os.stat", (str(path)[-60:], result.st_mtime), is_held)
            if is_held:
                is_new = result.st_mtime >= self.interposer.epoch  # a time before the first run
                return _with_time(result, _FIRST_DAY + is_new * _DAY + _number(path) % _DAY)
            if self.seed is not None:
                return _with_time(result, _FIRST_DAY + _number("{}|{}".format(self.seed, os.fsdecode(path))) % _DAY)
            return result

        return stat


class _Entries(object):
    """The entries of os.scandir, with times that can be pinned."""

    def __init__(self, entries, wrap_stat):
        self._entries, self._wrap_stat, self.close = entries, wrap_stat, entries.close

    def __iter__(self):
        return self

    def __next__(self):
        return _Entry(next(self._entries), self._wrap_stat)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Entry(object):
    """A stand-in for os.DirEntry, a class in C without subclasses, with another stat()."""

    __class__ = os.DirEntry  # type: ignore[assignment]  # for isinstance()

    def __init__(self, entry, wrap_stat):
        self._entry = entry
        self._stat = wrap_stat(lambda path, **kwargs: entry.stat(**kwargs))

    def stat(self, **kwargs):
        return self._stat(self._entry.path, **kwargs)

    def __getattr__(self, name):
        return getattr(self._entry, name)

    def __fspath__(self):
        return self._entry.path

    def __repr__(self):
        return repr(self._entry)


def _number(path):
    return zlib.crc32(os.path.basename(os.fsdecode(path)).encode("utf-8", "surrogateescape"))


def _with_time(result, timestamp):
    """Return the stat_result with other times. timestamp: seconds since 1970."""
    fields = list(result)
    fields[7:10] = timestamp, timestamp, timestamp
    attributes = {key: getattr(result, key) for key in dir(result) if key.startswith("st_") and key not in _FIELDS}
    for key in ("atime", "mtime", "ctime"):
        attributes["st_" + key], attributes["st_{}_ns".format(key)] = float(timestamp), timestamp * 10**9
    return os.stat_result(fields, attributes)
