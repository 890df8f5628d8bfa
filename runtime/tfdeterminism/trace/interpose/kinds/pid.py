"""The numbers of a process and its threads.

Pinned: os.getpid returns a number that follows from the process's position in the tree of processes, and so does
multiprocessing.current_process().pid; os.kill maps it to the real number. threading.get_ident and get_native_id return
to a user's line a number that follows from the thread's name. Cannot be pinned: Process.pid of another process,
Popen.pid and Thread.ident, getppid, C code. Example: ``numpy.random.seed(os.getpid())``.
"""

import os
import threading
import zlib

from .base import Kind

_LARGEST = 4000000  # about the largest number of a process in Linux, 1 << 22


class Pid(Kind):
    name, label, coarseness = "pid", "the number of a process or thread", 0

    def open(self):
        getpid, kill = os.getpid, os.kill
        self.replace(os, "getpid", lambda *_: self._number(), unless=self.is_called_by_library)
        if self.name in self.interposer.pins:
            os.kill = lambda pid, signal: kill(getpid() if pid == self._number() else pid, signal)

        for name in ("get_ident", "get_native_id"):  # the second came with Python 3.8
            if hasattr(threading, name):
                self.replace(threading, name, self._number_of_thread, unless=self.is_called_by_library)

        self.interposer.imports.add({"multiprocessing.process": self._replace_process})

    def _replace_process(self, module):
        """Replace the pid of multiprocessing's current process, which asks for its own number."""

        class Identified(object):
            ident = staticmethod(module.BaseProcess.ident.fget)

        is_other = lambda process: process is not module.current_process() or self.is_called_by_library()  # noqa: E731
        self.replace(Identified, "ident", lambda *_: self._number(), unless=is_other)
        module.BaseProcess.ident = module.BaseProcess.pid = property(Identified.ident)

    def _number_of_thread(self, *_):
        return self._number() + zlib.crc32(threading.current_thread().name.encode("utf-8", "replace")) % _LARGEST

    def _number(self):
        # stream: the task of a pool that this thread runs, else the position of the process.
        return 2 + zlib.crc32(self.interposer.stream.encode()) % _LARGEST
