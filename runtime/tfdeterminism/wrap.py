"""Wrappers around a function that is looked up under one name only: a method, a hook.

For ops, which are exported under many names, see replace.py.
"""

import functools

_MARK = "tfdeterminism_around"


class Wrappers(object):
    """A set of wrapped functions that undo() restores together."""

    def __init__(self):
        self._undo = []

    def wrap(self, holder, name, around):
        """Replace holder.name by a function that calls around(original, *args, **kwargs)."""
        self.set(holder, name, _make_wrapper(getattr(holder, name), around))

    def set(self, holder, name, value):
        """Set holder.name until undo()."""
        old_value = vars(holder).get(name)
        setattr(holder, name, value)
        self._undo.append((holder, name, old_value))

    def undo(self):
        """Restore all attributes, the last one first."""
        while self._undo:
            holder, name, old_value = self._undo.pop()
            if old_value is None:
                delattr(holder, name)
            else:
                setattr(holder, name, old_value)


def wrap_permanently(holder, name, around):
    """Wrap holder.name until the process ends, if this TensorFlow has it; repeating it has no effect."""
    original = getattr(holder, name, None)
    if original is not None and around not in getattr(original, _MARK, ()):
        wrapper = _make_wrapper(original, around)
        setattr(wrapper, _MARK, getattr(original, _MARK, ()) + (around,))
        setattr(holder, name, wrapper)


def _make_wrapper(original, around):
    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        return around(original, *args, **kwargs)

    return wrapper
