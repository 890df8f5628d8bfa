"""The numbers of a process and its threads.

Pinned: os.getpid gives one that follows from the process's position in the tree of processes; os.kill is told the
real one; threading.get_ident and get_native_id give a user's line one that follows from the thread's name.
Cannot be pinned: Process.pid, Popen.pid and Thread.ident, getppid, C code.
Example: ``numpy.random.seed(os.getpid())``.
"""

import os
import threading
import zlib

from .base import Kind

_LARGEST = 4000000


class Pid(Kind):
    name, words, coarse = "pid", "the number of a process or thread", 0

    def open(self):
        getpid, kill = os.getpid, os.kill
        self.replace(os, "getpid", lambda *_: self._number(), unless=self.is_called_by_library)
        if self.name in self.interposer.pins:
            os.kill = lambda pid, signal: kill(getpid() if pid == self._number() else pid, signal)

        for name in ("get_ident", "get_native_id"):  # the second came with Python 3.8
            if hasattr(threading, name):
                self.replace(threading, name, self._number_of_thread, unless=self.is_called_by_library)

    def _number_of_thread(self, *_):
        return self._number() + zlib.crc32(threading.current_thread().name.encode("utf-8", "replace")) % _LARGEST

    def _number(self):
        return 2 + zlib.crc32(self.interposer.stream.encode()) % _LARGEST
