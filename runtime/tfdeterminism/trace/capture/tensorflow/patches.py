"""Changes to TensorFlow's own functions, all undone together."""

import functools


class Patches(object):
    def __init__(self):
        self._undo = []

    def wrap(self, holder, name, around):
        """Replace holder.name by a function that calls around(original, *args, **kwargs)."""
        original = getattr(holder, name)

        @functools.wraps(original)
        def wrapped(*args, **kwargs):
            return around(original, *args, **kwargs)

        self.set(holder, name, wrapped)

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
