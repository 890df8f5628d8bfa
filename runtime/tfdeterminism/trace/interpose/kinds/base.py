"""The base of each kind of nondeterministic input, such as the time.

A call that returns such a value is noted (written to the ledger of calls), pinned (it returns a fixed value) or varied
(it returns another value for each seed).
"""

import functools


class Kind(object):
    """One kind. Each subclass has a file, whose docstring says what its pin covers, how, and what it cannot.

    name: its key in the ledger, and of its pin.
    words: its name for people.
    coarse: how much else its pin takes away; 0: nothing. A search gives up the coarsest pins first.
    has_places: can it be pinned at chosen lines only?
    needs: pins that have to be active, too.
    environment: variables that pin it in a process that is yet to start.
    pinned: is there a pin? Without one, calls are noted only.
    constant: is the value the same in all runs on one machine? Then it is varied only.
    """

    name = words = ""
    coarse = 1
    has_places = True
    needs = ()  # type: tuple
    environment = {}  # type: dict
    pinned = True
    constant = False

    def __init__(self, interposer):
        self.interposer = interposer

    def open(self):
        """Install the hooks."""

    def on_task(self):
        """Called where a worker process begins with a task of a pool."""

    @property
    def seed(self):
        """The seed of the variation; None where this kind is not varied."""
        return self.interposer.vary.get(self.name)

    def holds(self, place):
        return self.interposer.holds(self.name, place)

    def note(self, place, what, value=None, held=False):
        self.interposer.note(self.name, place, what, value, held)

    def replace(
        self, owner, name, pinned, value=lambda given: given, unless=lambda *args: False, varied=None
    ):
        """Note each call of owner.name with the user's line.

        pinned(place, original, *args, **kwargs): the result where the pin holds.
        value(result): the part of the result that the ledger keeps.
        unless(*args): is the call left alone?
        varied(seed, original, *args, **kwargs): the result where this kind is varied.
        """
        original = getattr(owner, name)

        def call(*args, **kwargs):
            if unless(*args):
                return original(*args, **kwargs)
            place = self.interposer.place()
            held = self.holds(place)
            if held:
                given = pinned(place, original, *args, **kwargs)
            elif varied is not None and self.seed is not None:
                given = varied(self.seed, original, *args, **kwargs)
            else:
                given = original(*args, **kwargs)
            self.note(place, name, value(given), held)
            return given

        if isinstance(owner, type):
            setattr(owner, name, functools.wraps(original)(call))
        else:
            setattr(owner, name, Function(call, original, owner.__name__, name))

    def is_called_by_library(self, *args):
        """For `unless`: the caller is a library, not the user's program."""
        return not self.interposer.is_called_by_user()


class Function(object):
    """In place of a built-in function: like one, it is not bound as an attribute of a class, and pickled by name."""

    def __init__(self, call, original, module, name):
        functools.update_wrapper(self, original)
        self._call, self.__module__, self.__name__, self.__qualname__ = call, module, name, name

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __reduce__(self):
        return self.__name__


def nothing(given):
    """For `value`: the ledger keeps no value."""
    return None
