"""Answers that change from run to run, of which the first is stored and given to all later runs."""

import hashlib
import os
import pickle
import threading

_PREFIX = "answer-"


class Answers(object):
    """The answers of a search. folder: the same in each of its runs, and written by nobody else."""

    def __init__(self, folder):
        self._folder = folder
        self._counts, self._lock = {}, threading.Lock()

    def get(self, key, ask):
        """Return the stored answer of a call, else that of ask(), which is stored; ask() may raise an exception.

        key: tuple of texts that is the same in each run. Its calls are numbered.
        """
        with self._lock:
            number = self._counts[key] = self._counts.get(key, 0) + 1
        name = hashlib.sha1(repr((key, number)).encode("utf-8", "surrogateescape")).hexdigest()
        path = os.path.join(self._folder, _PREFIX + name)
        try:
            with open(path, "rb") as source:
                return pickle.load(source)
        except (EOFError, OSError, pickle.UnpicklingError):
            answer = ask()
        try:
            with open(path + ".part", "wb") as target:
                pickle.dump(answer, target)
            os.replace(path + ".part", path)
        except OSError:
            pass  # the disk is full: later runs ask again
        return answer
