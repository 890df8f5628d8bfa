"""Batches: what a DataLoader's workers send is no value of Python's, but of the input pipeline."""

from .. import user_frames
from . import internals as pt


class DataLoaderHook(object):
    """Marks what comes out of a DataLoader with the line that asked for it."""

    def __init__(self, recorder, wrappers):
        self._recorder, self._wrappers = recorder, wrappers

    def install(self, module):
        """module: torch.utils.data.dataloader."""
        self._wrappers.wrap(module._BaseDataLoaderIter, "__next__", self._next)

    def _next(self, original, iterator):
        workers = int(getattr(iterator, "_num_workers", 0) or 0)
        if not workers or not self._recorder.active:
            return original(iterator)
        with self._recorder.unrecorded():  # which of the workers was sooner decides what is unpacked now
            batch = original(iterator)
        stack = user_frames.stack_of_caller()
        for tensor in pt.tensors_in(batch):
            tensor._tfdet_from = "DataLoader", "input", stack, {"workers": workers}
        return batch
