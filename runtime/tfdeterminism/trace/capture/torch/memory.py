"""Which ops have made what lies in a tensor's memory. Views share it, and ops write into it in place."""

import torch

from . import digests
from . import internals as pt

_KEYS_LIMIT = 64      # ops that have written parts of one memory
_FEWEST = 4096        # memories that are known before the dead are looked for


class Memory(object):
    """keys: ids of the outputs that lie here. origin: (op, stack) of what made it before recording began, or None.
    unwatched: may it change without an op that is seen? Then each read looks at it again; seen: what was read."""

    __slots__ = ("keys", "origin", "unwatched", "seen", "_alive")

    def __init__(self, storage):
        self._alive = pt.StorageWeakRef(storage)
        self.keys, self.origin, self.unwatched, self.seen = [], None, False, {}

    @property
    def is_gone(self):
        return self._alive.expired()

    def written(self, key, whole):
        """An op has written it. whole: nothing else is left in it."""
        self.keys = [key] if whole else [one for one in self.keys if one != key][-_KEYS_LIMIT:] + [key]
        self.origin = None
        if whole:
            self.unwatched, self.seen = False, {}

    def changed(self, tensor):
        """The digest of this part of a memory that is not watched; None if it is what was read last."""
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        value = digests.of(tensor)
        if self.seen.get(place) == value:
            return None
        if len(self.seen) > _KEYS_LIMIT:
            self.seen.clear()
        self.seen[place] = value
        return value


class Memories(object):
    """All that are alive."""

    def __init__(self):
        self._known, self._limit = {}, _FEWEST

    def of(self, tensor):
        """The Memory of a tensor, a new one if nobody knew it; None for a tensor without (sparse, fake)."""
        if tensor.layout is not torch.strided or tensor.is_meta:
            return None
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a tensor of somebody's own
            return None
        found = self._known.get(storage._cdata)
        if found is None:
            self._forget()
            found = self._known[storage._cdata] = Memory(storage)
        return found

    def _forget(self):
        if len(self._known) >= self._limit:
            self._known = {address: one for address, one in self._known.items() if not one.is_gone}
            self._limit = max(_FEWEST, 2 * len(self._known))


def is_whole(tensor):
    """Does it fill its memory?"""
    return tensor.is_contiguous() and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
