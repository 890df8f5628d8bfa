"""Environment variables, which are the same in each run on one machine.

Noted: variables that a line of the user's reads, set or not; a line that iterates over all is noted once. For names of
machines and jobs see machine.py. Cannot be varied: another machine may have any value. Example: ``data =
os.environ.get("DATA_DIR", "data")``.
"""

import functools
import os

from .base import Kind
from .machine import FRAMES, VARIABLES

_ALL = "all variables"


class Environment(Kind):
    name, label, has_places = "environment", "a variable of the environment", False
    has_pin, constant = False, True

    def __init__(self, interposer):
        Kind.__init__(self, interposer)
        self._copying = set()  # lines that iterate over all variables

    def open(self):
        self._wrap("__iter__", self._on_iterate)
        self._wrap("__getitem__", self._on_read)

    def _wrap(self, method, on_access):
        owner = type(os.environ)
        original = getattr(owner, method)

        @functools.wraps(original)
        def call(variables, *args):
            is_asked = variables is os.environ and not self.interposer.is_called_by_project()
            if is_asked and self.interposer.is_called_by_user(FRAMES):
                on_access(self.interposer.place(), *args)
            return original(variables, *args)

        setattr(owner, method, call)

    def _on_iterate(self, place):
        self._copying.add(place)
        self.note(place, _ALL)

    def _on_read(self, place, name):
        if name not in VARIABLES and place not in self._copying:
            self.note(place, str(name))
