"""Variables of the environment: each run on one machine gets the same.

Noted: those that a line of the user's asks for, set or not; one that goes through all is noted once. Of names of
machines and jobs see machine.py. Cannot be varied: another machine may have any value there.
Example: ``data = os.environ.get("DATA_DIR", "data")``.
"""

import functools
import os

from .base import Kind
from .machine import FRAMES, VARIABLES

_ALL = "all variables"


class Environment(Kind):
    name, words, has_places = "environment", "a variable of the environment", False
    pinned, constant = False, True

    def __init__(self, interposer):
        Kind.__init__(self, interposer)
        self._copying = set()  # lines that go through all

    def open(self):
        self._wrap("__iter__", self._iterates)
        self._wrap("__getitem__", self._asks)

    def _wrap(self, method, asked):
        owner = type(os.environ)
        original = getattr(owner, method)

        @functools.wraps(original)
        def call(variables, *args):
            if variables is os.environ and self.interposer.is_called_by_user(FRAMES):
                asked(self.interposer.place(), *args)
            return original(variables, *args)

        setattr(owner, method, call)

    def _iterates(self, place):
        self._copying.add(place)
        self.note(place, _ALL)

    def _asks(self, place, name):
        if name not in VARIABLES and place not in self._copying:
            self.note(place, str(name))
