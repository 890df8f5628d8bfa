"""Which ops have made what lies in a tensor's memory. Views share it, and ops write into it in place."""

import torch

from . import digests
from . import internals as pt

_KEYS_LIMIT = 64      # ops that have written parts of one memory
_FEWEST = 128         # memories that are known before the dead are looked for: what is known of one holds a few bytes


class StorageProvenance(object):
    """keys: ids of the outputs that lie here. origin: (op, stack) of what made it before recording began, or None.
    unwatched: may it change without an op that is seen? Then each read looks at it again; seen: what was read.
    unwritten: that of the keys which gave memory that nobody had written, of which there may be some left, or None."""

    __slots__ = ("keys", "origin", "unwatched", "seen", "unwritten", "_sent", "_alive")

    def __init__(self, storage):
        self._alive = pt.StorageWeakRef(storage)
        self.keys, self.origin, self.unwatched, self.seen = [], None, False, {}
        self.unwritten, self._sent = None, False

    @property
    def is_gone(self):
        return self._alive.expired()

    def written(self, key, whole, op):
        """An op (an ops.OpSchema) has written it. whole: nothing else is left in it."""
        if whole:
            self.keys, self.unwatched, self.seen, self.unwritten = [key], False, {}, None
        else:
            rest = [one for one in self.keys if one not in (key, self.unwritten)]
            self.keys = [one for one in (self.unwritten,) if one not in (None, key)] + rest[-_KEYS_LIMIT:] + [key]
        self.origin = None
        self.unwatched = op.is_later or self.unwatched
        self.unwritten = key if op.is_empty else self.unwritten
        self._sent = op.is_later

    @property
    def is_nobodys(self):
        """Has no op written anything of it?"""
        return self.keys == [self.unwritten]

    def read(self, tensor, eager):
        """(key, digest): how what is read of this part is to be recorded, under the name of who may have written it
        unseen; None if it is what was read last. eager: the recorder's eager_keys.EagerKeys."""
        value = self.changed(tensor)
        if value is None:
            return None
        key = self.keys[-1] if self._sent or self.unwritten is None else self.unwritten
        for other in self.keys:
            if self.unwritten is not None and other != key:
                eager.feed(key, other)
        return key, value

    def changed(self, tensor):
        """The digest of this part of a memory that is not watched; None if it is what was read last."""
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        value = digests.digest_tensor(tensor)
        if self.seen.get(place) == value:
            return None
        if len(self.seen) > _KEYS_LIMIT:
            self.seen.clear()
        self.seen[place] = value
        return value


class StorageRegistry(object):
    """All that are alive."""

    def __init__(self):
        self._known, self._limit = {}, _FEWEST

    def of(self, tensor):
        """The StorageProvenance of a tensor, a new one if nobody knew it; None for a tensor without (sparse, fake)."""
        if tensor.layout is not torch.strided or tensor.is_meta:
            return None
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a tensor of somebody's own
            return None
        found = self._known.get(storage._cdata)
        if found is None:
            self._forget()
            found = self._known[storage._cdata] = StorageProvenance(storage)
        return found

    def _forget(self):
        if len(self._known) >= self._limit:
            self._known = {address: one for address, one in self._known.items() if not one.is_gone}
            self._limit = max(_FEWEST, 2 * len(self._known))


def covers_storage(tensor):
    """Does it fill its memory?"""
    return tensor.is_contiguous() and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def is_contiguous_storage(tensor):
    """Does it show its whole memory as it lies there?"""
    return tensor.layout is not torch.strided or tensor.storage_offset() == 0 and covers_storage(tensor)
