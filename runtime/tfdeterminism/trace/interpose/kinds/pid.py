"""The numbers of a process and its threads.

Pinned: os.getpid returns a number that follows from the process's position in the tree of processes, and so does
multiprocessing.current_process().pid, and os.getppid one that follows from the parent's; os.kill maps both to the real
numbers. threading.get_ident and get_native_id return
to a user's line a number that follows from the thread's name. Cannot be pinned: Process.pid of another process,
Popen.pid and Thread.ident, C code. Example: ``numpy.random.seed(os.getpid())``.
"""

import os
import threading
import zlib

from .base import Kind

_LARGEST = 4000000  # about the largest number of a process in Linux, 1 << 22


class Pid(Kind):
    name, label, coarseness = "pid", "the number of a process or thread", 0

    def open(self):
        getpid, getppid, kill = os.getpid, os.getppid, os.kill
        self.replace(os, "getpid", lambda *_: self._number(), unless=self.is_called_by_library)
        self.replace(os, "getppid", lambda *_: self._number_of_parent(), unless=self.is_called_by_library)
        if self.name in self.interposer.pins:
            real = lambda pid: {self._number(): getpid, self._number_of_parent(): getppid}.get(pid, lambda: pid)()  # noqa: E731
            os.kill = lambda pid, signal: kill(real(pid), signal)

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
        return _number_of(self.interposer.stream)

    def _number_of_parent(self):
        return _number_of(self.interposer.position.rpartition(".")[0])


def _number_of(stream):
    return 2 + zlib.crc32(stream.encode()) % _LARGEST
