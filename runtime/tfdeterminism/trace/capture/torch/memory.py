"""Which ops have made what lies in a tensor's memory. Views share it, and ops write into it in place."""

import threading

import torch

from . import digests
from . import internals as pt

_KEYS_LIMIT = 64      # ops that have written parts of one memory
_FEWEST = 128         # memories that are known before the dead are looked for: what is known of one holds a few bytes


class StorageProvenance(object):
    """Which ops have written the memory of a tensor.

    keys: ids of the outputs that are stored in it. origin: (op, stack) of what made it before recording began, or None.
    may_change_unseen: can an op that is not recorded write it? Then each read computes its digest again.
    last_digests: {part of the memory: digest of the last read}. uninitialized_key: which of the keys allocated memory
    without writing it, as far as some of it is left; or None.
    """

    __slots__ = ("_alive", "_sent", "keys", "last_digests", "may_change_unseen", "origin", "uninitialized_key")

    def __init__(self, storage):
        self._alive = pt.StorageWeakRef(storage)
        self.keys, self.origin, self.may_change_unseen, self.last_digests = [], None, False, {}
        self.uninitialized_key, self._sent = None, False

    @property
    def is_freed(self):
        return self._alive.expired()

    def on_write(self, key, whole, op):
        """An op (an ops.OpSchema) has written it. whole: nothing else is left in it."""
        if whole:
            self.keys, self.may_change_unseen, self.last_digests, self.uninitialized_key = [key], False, {}, None
        else:
            rest = [one for one in self.keys if one not in (key, self.uninitialized_key)]
            uninitialized = [one for one in (self.uninitialized_key,) if one not in (None, key)]
            self.keys = uninitialized + rest[-_KEYS_LIMIT:] + [key]
        self.origin = None
        self.may_change_unseen = op.is_async or self.may_change_unseen
        self.uninitialized_key = key if op.is_empty else self.uninitialized_key
        self._sent = op.is_async

    @property
    def is_uninitialized(self):
        """Has no op written anything of it?"""
        return self.keys == [self.uninitialized_key]

    def key_and_digest(self, tensor, eager):
        """(key, digest): how what is read of this part is to be recorded, under the name of who may have written it
        unseen; None if it is what was read last. eager: the recorder's eager_keys.EagerKeys."""
        value = self.new_digest(tensor)
        if value is None:
            return None
        key = self.keys[-1] if self._sent or self.uninitialized_key is None else self.uninitialized_key
        for other in self.keys:
            if self.uninitialized_key is not None and other != key:
                eager.add_inputs(key, other)
        return key, value

    def new_digest(self, tensor):
        """The digest of this part of a memory that is not watched; None if it is what was read last."""
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        value = digests.digest_tensor(tensor)
        if self.last_digests.get(place) == value:
            return None
        if len(self.last_digests) > _KEYS_LIMIT:
            self.last_digests.clear()
        self.last_digests[place] = value
        return value


class StorageRegistry(object):
    """All that are alive. Threads share it: what is known of a live one is never lost."""

    def __init__(self):
        self._known, self._limit, self._forgetting = {}, _FEWEST, threading.Lock()

    def find(self, tensor):
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
            found = self._known.setdefault(storage._cdata, StorageProvenance(storage))
        return found

    def _forget(self):
        """One thread at a time: what is freed keeps its address from others until it is taken out."""
        if len(self._known) < self._limit or not self._forgetting.acquire(False):
            return
        try:
            for address in [address for address, one in list(self._known.items()) if one.is_freed]:
                del self._known[address]
            self._limit = max(_FEWEST, 2 * len(self._known))
        finally:
            self._forgetting.release()


def covers_storage(tensor):
    """Does it fill its memory?"""
    return tensor.is_contiguous() and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def is_contiguous_storage(tensor):
    """Does it show its whole memory as it lies there?"""
    return tensor.layout is not torch.strided or tensor.storage_offset() == 0 and covers_storage(tensor)
