"""The process's number.

Pinned: os.getpid gives one that follows from the process's position in the tree of processes; os.kill is told the
real one. Cannot be pinned: Process.pid and Popen.pid in the parent, getppid, C code. Example:
``numpy.random.seed(os.getpid())``.
"""

import os
import zlib

from .base import Kind

_LARGEST = 4000000


class Pid(Kind):
    name, words, coarse = "pid", "the process's number (pid)", 0

    def open(self):
        getpid, kill = os.getpid, os.kill
        self.replace(os, "getpid", lambda *_: self._number(), unless=self.is_called_by_library)
        if self.name in self.interposer.pins:
            os.kill = lambda pid, signal: kill(getpid() if pid == self._number() else pid, signal)

    def _number(self):
        return 2 + zlib.crc32(self.interposer.stream.encode()) % _LARGEST
