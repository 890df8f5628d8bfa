"""What a kind of nondeterminism is: it is noted, pinned or varied at each call that gives it to the program."""

import functools


class Kind(object):
    """One kind. Subclasses have a file each, whose docstring says what is pinned, how, and what cannot be.

    name: in the ledger, and of the pin; words: what a person calls it; coarse: 0 takes one thing away; the higher, the
    more else a pin takes away, and the earlier it is given up; has_places: can it be pinned at some lines only?; needs:
    names of the pins without which this one pins nothing; environment: variables that pin it in a process that is yet
    to start; pinned: is there a pin? A kind without one is noted only; constant: is it the same in each run on one
    machine? Then it is varied only.
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
        """Begin to note, and to pin where the pin holds."""

    def on_task(self):
        """A worker process begins with a task of a pool."""

    @property
    def seed(self):
        """Of the variation of this kind, or None."""
        return self.interposer.vary.get(self.name)

    def holds(self, place):
        return self.interposer.holds(self.name, place)

    def note(self, place, what, value=None, held=False):
        self.interposer.note(self.name, place, what, value, held)

    def replace(
        self, owner, name, pinned, value=lambda given: given, unless=lambda *args: False, varied=None
    ):
        """Note each call of owner.name with the user's line; where the pin holds, it gives what pinned(place, original,
        *args, **kwargs) gives.

        value: what of the result the ledger keeps; unless(*args): calls that are left alone; varied(seed, original,
        *args, **kwargs): what a call gives where this kind is varied.
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
        """For `unless`: it is no line of the user's that calls."""
        return not self.interposer.is_called_by_user()


class Function(object):
    """Takes the place of a built-in function: as an attribute of a class it is not bound, and it is pickled by its
    name."""

    def __init__(self, call, original, module, name):
        functools.update_wrapper(self, original)
        self._call, self.__module__, self.__name__, self.__qualname__ = call, module, name, name

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __reduce__(self):
        return self.__name__


def nothing(given):
    """For `value`: the ledger keeps nothing of the result."""
    return None
