"""The ops that wrote the memory of each tensor. Views share memory, and ops write into it in place."""

import threading

import torch

from . import digests
from . import internals as pt

_KEYS_LIMIT = 64      # ops that have written parts of one memory
_FEWEST = 512         # entries before freed storages are searched for; an entry is small


class StorageProvenance(object):
    """The ops that wrote the memory of a tensor.

    keys: ids of the outputs that are stored in it. origin: (op, stack) of the op that made it before recording began,
    or None. may_change_unseen: whether code that is not recorded can write it, so that each read computes its digest
    again. last_digests: {part of the memory: digest of the last read}. uninitialized_key: which of the keys allocated
    memory without writing it, while some of it may be unwritten; or None.
    """

    __slots__ = ("_alive", "_sent", "keys", "last_digests", "may_change_unseen", "origin", "uninitialized_key")

    def __init__(self, storage):
        self._alive = pt.StorageWeakRef(storage)
        self.keys, self.origin, self.may_change_unseen, self.last_digests = [], None, False, {}
        self.uninitialized_key, self._sent = None, False  # _sent: whether the last write ends later

    @property
    def is_freed(self):
        return self._alive.expired()

    def on_write(self, key, covers_all, op):
        """Note that an op (an ops.OpSchema) has written the memory, all of it or a part."""
        if covers_all:
            self.keys, self.may_change_unseen, self.last_digests, self.uninitialized_key = [key], False, {}, None
        else:
            other_keys = [other for other in self.keys if other not in (key, self.uninitialized_key)]
            uninitialized = [other for other in (self.uninitialized_key,) if other not in (None, key)]
            self.keys = uninitialized + other_keys[-_KEYS_LIMIT:] + [key]
        self.origin = None
        self.may_change_unseen = op.is_written_later or self.may_change_unseen
        self.uninitialized_key = key if op.is_empty else self.uninitialized_key
        self._sent = op.is_written_later

    @property
    def is_uninitialized(self):
        """Whether no op has written any part of the memory."""
        return self.keys == [self.uninitialized_key]

    def key_and_digest(self, tensor, eager):
        """Return (key, digest) to record for a read of this part, or None if it is as last read.

        key: the key of the op that may have written the part unrecorded. eager: the recorder's eager_keys.EagerKeys.
        """
        value = self.new_digest(tensor)
        if value is None:
            return None
        key = self.keys[-1] if self._sent or self.uninitialized_key is None else self.uninitialized_key
        for other in self.keys:
            if self.uninitialized_key is not None and other != key:
                eager.add_inputs(key, other)
        return key, value

    def new_digest(self, tensor):
        """Return the digest of this part of the memory; None if it is the same as at the last read."""
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        value = digests.digest_tensor(tensor)
        if self.last_digests.get(place) == value:
            return None
        if len(self.last_digests) > _KEYS_LIMIT:
            self.last_digests.clear()
        self.last_digests[place] = value
        return value


class StorageRegistry(object):
    """The StorageProvenance of each live storage, shared by all threads."""

    def __init__(self):
        self._known, self._limit, self._forgetting = {}, _FEWEST, threading.Lock()

    def find(self, tensor):
        """Return the StorageProvenance of a tensor, new if necessary; None without memory (sparse, fake)."""
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a sparse tensor, or a custom subclass
            return None
        provenance = self._known.get(storage._cdata)
        if provenance is None and tensor.layout is torch.strided and not tensor.is_meta:
            self._forget()
            provenance = self._known.setdefault(storage._cdata, StorageProvenance(storage))
        return provenance

    def _forget(self):
        """Remove freed storages, in one thread at a time.

        The weak reference in an entry keeps the address of its storage from being reused.
        """
        if len(self._known) < self._limit or not self._forgetting.acquire(False):
            return
        try:
            for address in [address for address, provenance in list(self._known.items()) if provenance.is_freed]:
                del self._known[address]
            self._limit = max(_FEWEST, 2 * len(self._known))
        finally:
            self._forgetting.release()


def covers_storage(tensor):
    """Return whether the tensor fills its storage."""
    return tensor.is_contiguous() and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def is_contiguous_storage(tensor):
    """Return whether the tensor shows its whole storage in the order of memory."""
    return tensor.layout is not torch.strided or tensor.storage_offset() == 0 and covers_storage(tensor)
