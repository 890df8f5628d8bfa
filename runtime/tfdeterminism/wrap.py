"""Put a function of ours around one of TensorFlow's, at the one place where TensorFlow looks for it: a method, a hook.

Ops are another matter: they have many names, and what stands in for them may refuse a call (the replace module).
"""

import functools

_MARK = "tfdeterminism_around"


class Wrappers(object):
    """Functions that were put around others, all taken away together."""

    def __init__(self):
        self._undo = []

    def wrap(self, holder, name, around):
        """Replace holder.name by a function that calls around(original, *args, **kwargs)."""
        self.set(holder, name, _wrapped(getattr(holder, name), around))

    def set(self, holder, name, value):
        before = vars(holder).get(name)
        setattr(holder, name, value)
        self._undo.append((holder, name, before))

    def undo(self):
        while self._undo:
            holder, name, before = self._undo.pop()
            if before is None:
                delattr(holder, name)
            else:
                setattr(holder, name, before)


def wrap_for_good(holder, name, around):
    """The same for the rest of the process, where this TensorFlow has the function; harmless to repeat."""
    original = getattr(holder, name, None)
    if original is not None and around not in getattr(original, _MARK, ()):
        wrapped = _wrapped(original, around)
        setattr(wrapped, _MARK, getattr(original, _MARK, ()) + (around,))
        setattr(holder, name, wrapped)


def _wrapped(original, around):
    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        return around(original, *args, **kwargs)

    return wrapped
