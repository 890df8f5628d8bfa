"""The host reads: values of tensors that Python reads, and may pass on to ops as numbers."""

import threading

import torch

from .. import digest, pool_tasks, user_frames
from ..eager_keys import CallerIdentity
from . import digests

_MAX_INDEPENDENT = 32  # keys


class _ReadChain(object):
    """The host reads of a step. step: its number, -1 for none; latest: [key of the last one] or [].

    digest: of the reads in the chain; independent: keys of those outside of it: of tasks, or of uninitialized memory.
    """

    def __init__(self, step):
        self.step, self.latest, self.digest, self.independent = step, [], 0, []


class HostReads(object):
    """The host reads of a process. Those of one step, or of one task, form a chain.

    The digest of each read also contains the reads before it in its chain.
    """

    def __init__(self, recorder, storages, wrappers):
        self._recorder, self._storages = recorder, storages
        self._main = _ReadChain(-1)
        self._lock = threading.Lock()
        for name in ("numpy", "tolist", "__array__"):
            wrappers.wrap(torch.Tensor, name, self._on_numpy_export)

    def latest_keys(self):
        """Return the keys of the latest host reads of this step."""
        step_chain = self._of_step()
        chain = step_chain if pool_tasks.current_task() is None else self._chain()
        keys = step_chain.latest + step_chain.independent
        return keys + (chain.latest + chain.independent if chain is not step_chain else [])

    def record_scalar(self, key, value):
        """Record a number that an op returned. key: id of the op's output."""
        self._emit(key, digest.digest_bytes(repr(value).encode("utf-8")))

    def _emit(self, key, value):
        chain = self._chain()
        for previous in chain.latest:
            if previous != key:
                self._recorder.eager.add_inputs(key, previous)
        chain.digest = digest.digest_bytes("{:016x}{:016x}".format(chain.digest, value).encode("ascii"))
        self._recorder.emit_one(key, chain.digest)
        chain.latest = [key]
        if chain is not self._main:  # the result of the task may pass the value on
            self._add_independent(self._of_step(), key)

    def _add_independent(self, chain, key):
        with self._lock:  # tasks of several threads add to the chain of the step
            chain.independent = [other for other in chain.independent if other != key][-_MAX_INDEPENDENT:] + [key]

    def _chain(self):
        task = pool_tasks.current_task()
        return self._of_step() if task is None else task.state.setdefault("host reads", _ReadChain(-1))

    def _of_step(self):
        if self._main.step != self._recorder.steps.last:
            self._main = _ReadChain(self._recorder.steps.last)
        return self._main

    def _on_numpy_export(self, original, tensor, *args, **kwargs):
        """Record a read by NumPy, which may also write into the memory from now on."""
        recorder = self._recorder
        if recorder.is_recording_step() and not getattr(recorder.local, "busy", False):
            with recorder.unrecorded():
                self._read(tensor)
        return original(tensor, *args, **kwargs)

    def _read(self, tensor):
        storage = self._storages.find(tensor)
        value = digests.digest_tensor(tensor)
        if storage is None or not storage.keys or value is None:
            return
        if storage.is_uninitialized:  # NumPy will write it
            storage.may_change_unseen = True
            return
        stack = user_frames.stack_of_caller()
        nth = self._recorder.eager.next_occurrence("host read", tuple(stack[0][:2]) if stack else ())
        key = self._recorder.eager.key("Tensor.numpy", stack, 0, CallerIdentity(pool_tasks.thread_name(), 0, "", 0),
                                       storage.keys, nth, kind="op")
        read = storage.key_and_digest(tensor, self._recorder.eager)
        storage.may_change_unseen = True
        if storage.uninitialized_key is None:
            self._emit(key, value)
        else:  # uninitialized memory must not change the digests of later reads
            if read is not None:
                self._recorder.emit_one(read[0], read[1], digest.digest_shape(tensor.shape))
            self._recorder.emit_one(key, value)
            self._add_independent(self._chain(), key)
