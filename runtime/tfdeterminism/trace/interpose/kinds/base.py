"""The base of each kind of nondeterministic input, such as the time.

A call that returns such a value is noted (written to the ledger of calls), pinned (it returns a fixed value) or varied
(it returns another value for each seed).
"""

import functools


class Kind(object):
    """One kind of nondeterminism. Each subclass has a file, whose docstring says what its pin covers, and what not.

    name: its key in the ledger, and of its pin.
    label: its name for people.
    coarseness: how much else its pin removes, 0 for nothing. A search gives up the coarsest pins first.
    has_places: whether it can be pinned at chosen lines only.
    required_pins: pins that must be active, too.
    environment: variables that pin it in a new process.
    has_pin: whether there is a pin. Without one, calls are only noted.
    is_partial: whether the pin does not reach all calls that are noted.
    constant: whether the value is the same in all runs on one machine, so that it is only varied.
    """

    name = label = ""
    coarseness = 1
    has_places = True
    required_pins = ()  # type: tuple
    environment = {}  # type: dict
    has_pin = True
    is_partial = False
    constant = False

    def __init__(self, interposer):
        self.interposer = interposer

    def open(self):
        """Install the hooks."""

    def on_task(self):
        """Reset state where a worker process begins a task of a pool."""

    @property
    def seed(self):
        """The seed of the variation; None if this kind is not varied."""
        return self.interposer.vary.get(self.name)

    def is_pinned(self, place):
        return self.interposer.is_pinned(self.name, place)

    def note(self, place, what, value=None, held=False):
        self.interposer.note(self.name, place, what, value, held)

    def replace(
        self, owner, name, pinned, value=lambda result: result, unless=lambda *args: False, varied=None, what=None
    ):
        """Replace owner.name by a function that notes each call with the user's line.

        pinned(place, original, *args, **kwargs): returns the result where the pin holds.
        value(result): returns the part of the result that the ledger keeps.
        unless(*args): returns whether the call is left alone.
        varied(seed, original, *args, **kwargs): returns the result where this kind is varied.
        what(*args, **kwargs): returns the name of the call in the ledger; None for that of the function.
        """
        original = getattr(owner, name)

        def call(*args, **kwargs):
            if unless(*args):
                return original(*args, **kwargs)
            place = self.interposer.place()
            held = self.is_pinned(place)
            if held:
                result = pinned(place, original, *args, **kwargs)
            elif varied is not None and self.seed is not None:
                result = varied(self.seed, original, *args, **kwargs)
            else:
                result = original(*args, **kwargs)
            self.note(place, what(*args, **kwargs) if what else name, value(result), held)
            return result

        if isinstance(owner, type):
            setattr(owner, name, functools.wraps(original)(call))
        else:
            setattr(owner, name, Function(call, original, owner.__name__, name))

    def is_called_by_library(self, *args):
        """Return whether the caller is a library, not the user's program; for `unless`."""
        return not self.interposer.is_called_by_user()


class Function(object):
    """A stand-in for a built-in function: it is not bound as an attribute of a class, and is pickled by name."""

    def __init__(self, call, original, module, name):
        functools.update_wrapper(self, original)
        self._call, self.__module__, self.__name__, self.__qualname__ = call, module, name, name

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __reduce__(self):
        return self.__name__


def no_value(result):
    """Return None, so that the ledger keeps no value; for `value`."""
    return None
