"""Tensors that torch.load has read: no value of Python's, but of a file."""

import torch

from .. import user_frames
from . import internals as pt


class TorchLoadHook(object):
    """Marks them with the line that asked for them."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        wrappers.wrap(torch, "load", self._load)

    def _load(self, original, *args, **kwargs):
        if not self._recorder.active:
            return original(*args, **kwargs)
        with self._recorder.unrecorded():  # how they are put together is PyTorch's own
            found = original(*args, **kwargs)
        stack = user_frames.stack_of_caller()
        for tensor in pt.tensors_in(found) if _is_file(args[0] if args else kwargs.get("f")) else ():
            tensor._tfdet_from = "torch.load", "feed", stack, {"from_file": True}
        return found


def _is_file(source):
    """Not bytes in memory."""
    return isinstance(getattr(source, "name", source), (str, bytes)) or hasattr(source, "__fspath__")
