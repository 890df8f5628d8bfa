"""What Python has been told of tensors: numbers that it may hand on to ops, whose values then come from there."""

import torch

from .. import digest, pool_tasks, user_frames
from ..eager_keys import CallerIdentity
from . import digests

_MAX_INDEPENDENT = 32  # keys


class _ReadChain(object):
    """What was told in a step. last: key of the latest, or none; aside: keys of what stands beside the chain."""

    def __init__(self, step):
        self.step, self.last, self.digest, self.aside = step, [], 0, []


class HostReads(object):
    """All of one step is one chain, and all of one task: each record holds what was told before it, too."""

    def __init__(self, recorder, memories, wrappers):
        self._recorder, self._memories = recorder, memories
        self._main = _ReadChain(-1)
        for name in ("numpy", "tolist", "__array__"):
            wrappers.wrap(torch.Tensor, name, self._on_numpy_export)

    def keys(self):
        """Of the latest that was told in this step."""
        mine = self._of_step()
        own = mine if pool_tasks.current() is None else self._chain()
        return mine.last + mine.aside + (own.last + own.aside if own is not mine else [])

    def number(self, key, value):
        """An op has given a number. key: its output's id."""
        self._emit(key, digest.digest_bytes(repr(value).encode("utf-8")))

    def _emit(self, key, value):
        chain = self._chain()
        for before in chain.last:
            if before != key:
                self._recorder.eager.feed(key, before)
        chain.digest = digest.digest_bytes("{:016x}{:016x}".format(chain.digest, value).encode("ascii"))
        self._recorder.emit_one(key, chain.digest)
        chain.last = [key]
        if chain is not self._main:  # who waits for the task may be given it
            self._add_independent(self._of_step(), key)

    def _add_independent(self, chain, key):
        chain.aside = [one for one in chain.aside if one != key][-_MAX_INDEPENDENT:] + [key]

    def _chain(self):
        task = pool_tasks.current()
        return self._of_step() if task is None else task.state.setdefault("told", _ReadChain(-1))

    def _of_step(self):
        if self._main.step != self._recorder.steps.last:
            self._main = _ReadChain(self._recorder.steps.last)
        return self._main

    def _on_numpy_export(self, original, tensor, *args, **kwargs):
        """NumPy may write into this memory, too, from now on."""
        recorder = self._recorder
        if recorder.wants() and not getattr(recorder.local, "busy", False):
            with recorder.unseen():
                self._read(tensor)
        return original(tensor, *args, **kwargs)

    def _read(self, tensor):
        memory = self._memories.of(tensor)
        value = digests.digest_tensor(tensor)
        if memory is None or not memory.keys or value is None:
            return
        if memory.is_nobodys:  # NumPy is to write it
            memory.unwatched = True
            return
        stack = user_frames.stack_of_caller()
        nth = self._recorder.eager.nth("told", tuple(stack[0][:2]) if stack else ())
        key = self._recorder.eager.key("Tensor.numpy", stack, 0, CallerIdentity(pool_tasks.thread_name(), 0, "", 0),
                                       memory.keys, nth, kind="op")
        read = memory.read(tensor, self._recorder.eager)
        memory.unwatched = True
        if memory.unwritten is None:
            self._emit(key, value)
        else:  # what nobody has written is not to spoil what is told after it
            if read is not None:
                self._recorder.emit_one(read[0], read[1], digest.digest_shape(tensor.shape))
            self._recorder.emit_one(key, value)
            self._add_independent(self._chain(), key)
