"""The times at which files were written.

Pinned: os.stat, os.lstat and the entries of os.scandir give times that follow from the names; what the run has written
is newer than what was there before. Varied: times by chance. Cannot be pinned: fstat, C code.
Example: ``max(glob.glob("*.pt"), key=os.path.getmtime)``.
"""

import os
import zlib

from .base import Function, Kind

_FIRST_DAY = 1500000000  # seconds since 1970
_DAY = 86400
_ASKS_NO_TIME = tuple(
    "exists isfile isdir is_file is_dir getsize lexists islink ismount realpath _joinrealpath rmtree".split()
)
_FIELDS = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")
_CALLERS = 3  # frames between the user's line and os.stat at most: imports look at thousands of files


class Mtime(Kind):
    name, words, coarse = "mtime", "the times at which files were written", 0

    def open(self):
        for name in ("stat", "lstat"):
            original = getattr(os, name)
            setattr(os, name, Function(self._wrapped(original), original, "os", name))
        os.scandir = Function(self._wrapped_listing(os.scandir), os.scandir, "os", "scandir")

    def _wrapped_listing(self, original):
        """Entries of a folder that the user's own line lists ask for their times by us."""

        def scandir(*args, **kwargs):
            entries = original(*args, **kwargs)
            return _Entries(entries, self._wrapped) if self.interposer.is_called_by_user() else entries

        return scandir

    def _asks_for_time(self):
        frame = self.interposer.caller()
        return (
            frame is not None
            and frame.f_code.co_name not in _ASKS_NO_TIME
            and self.interposer.is_called_by_user(_CALLERS)
        )

    def _wrapped(self, original):
        def stat(path, *args, **kwargs):
            result = original(path, *args, **kwargs)
            if isinstance(path, (int, bytes)) or not self._asks_for_time():
                return result
            place = self.interposer.place()
            held = self.holds(place)
            self.note(place, "os.stat", (str(path)[-60:], result.st_mtime), held)
            if held:
                is_new = result.st_mtime >= self.interposer.epoch
                return _with_time(result, _FIRST_DAY + is_new * _DAY + _number(path) % _DAY)
            if self.seed is not None:
                return _with_time(result, _FIRST_DAY + _number("{}|{}".format(self.seed, os.fsdecode(path))) % _DAY)
            return result

        return stat


class _Entries(object):
    """What scandir gives, with entries whose times can be pinned."""

    def __init__(self, entries, wrapped):
        self._entries, self._wrapped, self.close = entries, wrapped, entries.close

    def __iter__(self):
        return self

    def __next__(self):
        return _Entry(next(self._entries), self._wrapped)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Entry(object):
    """An os.DirEntry, which is a type of C that nothing can be derived from, with another stat()."""

    __class__ = os.DirEntry  # type: ignore[assignment]  # for isinstance()

    def __init__(self, entry, wrapped):
        self._entry = entry
        self._stat = wrapped(lambda path, **kwargs: entry.stat(**kwargs))

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


def _with_time(result, when):
    """The stat_result with other times. when: in seconds since 1970."""
    first = list(result)
    first[7:10] = when, when, when
    rest = {key: getattr(result, key) for key in dir(result) if key.startswith("st_") and key not in _FIELDS}
    for key in ("atime", "mtime", "ctime"):
        rest["st_" + key], rest["st_{}_ns".format(key)] = float(when), when * 10**9
    return os.stat_result(first, rest)
