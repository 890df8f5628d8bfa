"""The mark on batches that a DataLoader's workers send, whose values come from the pipeline and not from Python."""

from .. import user_frames
from . import internals as pt


class DataLoaderHook(object):
    """The wrapper around DataLoader's iterators, which marks batches with the line that asked for them."""

    def __init__(self, recorder, wrappers):
        self._recorder, self._wrappers = recorder, wrappers

    def install(self, module):
        """Wrap the iterators. module: torch.utils.data.dataloader."""
        self._wrappers.wrap(module._BaseDataLoaderIter, "__next__", self._next)

    def _next(self, original, iterator):
        workers = int(getattr(iterator, "_num_workers", 0) or 0)
        if not workers or not self._recorder.active:
            return original(iterator)
        with self._recorder.unrecorded():  # which batch is unpacked now depends on the speed of the workers
            batch = original(iterator)
        stack = user_frames.stack_of_caller()
        for tensor in pt.tensors_in(batch):
            # op, kind, stack and attributes of the record that call.py writes for a tensor without a recorded op
            tensor._tfdet_from = "DataLoader", "input", stack, {"workers": workers}
        return batch
