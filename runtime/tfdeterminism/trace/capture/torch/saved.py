"""The mark on tensors that torch.load has read, whose values come from a file and not from Python."""

import torch

from .. import user_frames
from . import internals as pt


class TorchLoadHook(object):
    """The wrapper around torch.load, which marks tensors with the line that called it."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        wrappers.wrap(torch, "load", self._load)

    def _load(self, original, *args, **kwargs):
        if not self._recorder.active:
            return original(*args, **kwargs)
        with self._recorder.unrecorded():  # the ops that construct the tensors are PyTorch's own
            result = original(*args, **kwargs)
        stack = user_frames.stack_of_caller()
        for tensor in pt.tensors_in(result) if _is_file(args[0] if args else kwargs.get("f")) else ():
            # op, kind, stack and attributes of the record that call.py writes for a tensor without a recorded op
            tensor._tfdet_from = "torch.load", "feed", stack, {"from_file": True}
        return result


def _is_file(source):
    """Return whether the source is a file, and not bytes in memory."""
    return isinstance(getattr(source, "name", source), (str, bytes)) or hasattr(source, "__fspath__")
