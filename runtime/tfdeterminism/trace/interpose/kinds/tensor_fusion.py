"""The tensors that ranks sum together.

Pinned: Horovod's tensor fusion is switched off, by the environment. Noted: the user's lines that sum tensors of three
ranks or more (two commute). Cannot be pinned: at a line; the order in which NCCL sums. Example: ``hvd.allreduce`` of
many small gradients that do not wait for each other.
"""

import functools
import os

from .base import Kind

_THRESHOLD = "HOROVOD_FUSION_THRESHOLD"  # bytes of a buffer
_MODULES = ("horovod.torch.mpi_ops", "horovod.tensorflow.mpi_ops")
_SUMS = (
    "allreduce_async allreduce_async_ grouped_allreduce_async grouped_allreduce_async_ reducescatter_async "
    "_allreduce _grouped_allreduce _reducescatter"
)
_COMMUTING = 2  # ranks


class TensorFusion(Kind):
    name, label, has_places = "tensor-fusion", "which tensors ranks sum together", False
    environment = {_THRESHOLD: "0"}

    def open(self):
        self.interposer.imports.add({name: self._hook_sums for name in _MODULES})

    def _hook_sums(self, module):
        for name in _SUMS.split():
            if hasattr(module, name):
                setattr(module, name, self._wrap_sum(getattr(module, name), module.size))

    def _wrap_sum(self, original, size):
        @functools.wraps(original)
        def reduce(*args, **kwargs):
            result = original(*args, **kwargs)
            if size() > _COMMUTING:
                is_off = os.environ.get(_THRESHOLD) == "0"
                self.note(self.interposer.place(), original.__name__.strip("_"), None, is_off)
            return result

        return reduce
