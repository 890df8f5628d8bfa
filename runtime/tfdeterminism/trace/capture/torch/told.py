"""What Python has been told of tensors: numbers that it may hand on to ops, whose values then come from there."""

import torch

from .. import digest, frames
from ..eager_keys import Who
from . import digests

_ASIDE = 16  # keys


class Told(object):
    """All of one step is one chain: each record holds what was told before it, too."""

    def __init__(self, recorder, memories, wrappers):
        self._recorder, self._memories = recorder, memories
        self._step, self._last, self._digest = -1, [], 0
        self._aside = []  # what was told in this step of memory that nobody had written all of
        for name in ("numpy", "tolist", "__array__"):
            wrappers.wrap(torch.Tensor, name, self._handed_out)

    def keys(self):
        """Of the latest that was told in this step."""
        return self._last + self._aside if self._step == self._recorder.steps.number else []

    def number(self, key, value):
        """An op has given a number. key: its output's id."""
        self._emit(key, digest.of_bytes(repr(value).encode("utf-8")))

    def _emit(self, key, value):
        self._begin()
        for before in self._last:
            if before != key:
                self._recorder.eager.feed(key, before)
        self._digest = digest.of_bytes("{:016x}{:016x}".format(self._digest, value).encode("ascii"))
        self._recorder.emit_one(key, self._digest)
        self._last = [key]

    def _begin(self):
        if self._step != self._recorder.steps.number:
            self._step, self._last, self._digest, self._aside = self._recorder.steps.number, [], 0, []

    def _handed_out(self, original, tensor, *args, **kwargs):
        """NumPy may write into this memory, too, from now on."""
        recorder = self._recorder
        if recorder.wants() and not getattr(recorder.local, "busy", False):
            with recorder.unseen():
                self._read(tensor)
        return original(tensor, *args, **kwargs)

    def _read(self, tensor):
        memory = self._memories.of(tensor)
        value = digests.of(tensor)
        if memory is None or not memory.keys or value is None:
            return
        if memory.is_nobodys:  # NumPy is to write it
            memory.unwatched = True
            return
        stack = frames.of_caller()
        nth = self._recorder.eager.nth("told", tuple(stack[0][:2]) if stack else ())
        key = self._recorder.eager.key("Tensor.numpy", stack, 0, Who("", 0, "", 0), memory.keys, nth, kind="op")
        read = memory.read(tensor, self._recorder.eager)
        memory.unwatched = True
        if memory.unwritten is None:
            self._emit(key, value)
        else:  # what nobody has written is not to spoil what is told after it
            self._begin()
            if read is not None:
                self._recorder.emit_one(read[0], read[1], digest.of_shape(tensor.shape))
            self._recorder.emit_one(key, value)
            self._aside = self._aside[-_ASIDE:] + [key]
