"""The times at which files were written.

Pinned: os.stat gives times that follow from the names; what the run has written is newer than what was there before.
Varied: times by chance. Cannot be pinned: fstat, C code.
Example: ``max(glob.glob("*.pt"), key=os.path.getmtime)``.
"""

import os
import zlib

from .base import Function, Kind

_FIRST_DAY = 1500000000  # seconds since 1970
_DAY = 86400
_ASKS_NO_TIME = ("exists", "isfile", "isdir", "is_file", "is_dir", "getsize", "lexists", "islink")
_FIELDS = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")
_CALLERS = 3  # frames between the user's line and os.stat at most: imports look at thousands of files


class Mtime(Kind):
    name, words, coarse = "mtime", "the times at which files were written", 0

    def open(self):
        os.stat = Function(self._wrapped(os.stat), os.stat, "os", "stat")

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
                return _with_time(
                    result, _FIRST_DAY + _number("{}|{}".format(self.seed, os.fsdecode(path))) % _DAY
                )
            return result

        return stat


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
