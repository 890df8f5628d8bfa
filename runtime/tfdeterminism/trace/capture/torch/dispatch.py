"""The dispatch mode that records every op: its inputs, its outputs, and its place in the program.

An op that writes in place outputs the tensors that it has written. Views are not values of their own: the memory that
they show is read where they are used. Numbers from Python (a learning rate, an index) are inputs with their own
records.
"""

from .. import user_frames
from . import internals as pt
from . import ops
from .call import DispatchedOp
from .storage import is_contiguous_storage


class OpDispatchMode(pt.DispatchMode):
    """The TorchDispatchMode that records ops.

    storages: storage.StorageRegistry; host_reads: host_reads.HostReads; gradients: gradients.Gradients; modules:
    modules.ModulePaths; capture: an input_capture.TorchInputCapture or None.
    """

    def __init__(self, recorder, storages, host_reads, gradients, modules, capture):
        super(OpDispatchMode, self).__init__()
        self.recorder, self.storages, self.host_reads = recorder, storages, host_reads
        self.gradients, self.modules, self.capture = gradients, modules, capture
        self._ops = ops.OpSchemas()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        recorder = self.recorder
        if not recorder.active or getattr(recorder.local, "busy", False):
            return function(*args, **kwargs)
        op = self._ops.find(function)
        recorder.seen_ops = True
        if not recorder.is_recording_step():
            result = function(*args, **kwargs)
            if recorder.steps.is_before_window():
                self._remember(op, args, kwargs, result)
            return result
        try:
            call = None if op.is_view and self._is_identity_view(args, kwargs) else DispatchedOp(self, op, args, kwargs)
        except Exception as error:
            self._fail(error)
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        try:
            if call is not None:
                call.on_result(result)
        except Exception as error:
            self._fail(error)
        return result

    def _is_identity_view(self, args, kwargs):
        """Return whether a view shows all of a tensor whose records are known, and needs no record.

        A view with _tfdet_view (call.py) has an index that was recorded, so it needs one.
        """
        if kwargs or len(args) != 1 or type(args[0]) not in pt.TENSORS:
            return False
        storage = self.storages.find(args[0])
        return storage is not None and bool(storage.keys) and is_contiguous_storage(args[0]) \
            and not hasattr(args[0], "_tfdet_view")

    def _fail(self, error):
        """Stop recording, because an op of an unknown form must not end the user's program."""
        self.recorder.fail("an op cannot be traced: {}: {}".format(type(error).__name__, error))

    def _remember(self, op, args, kwargs, result):
        """Note which op made these tensors before recording began."""
        if op.is_view:
            return
        stack = None
        for tensor in op.outputs(args, kwargs, result):
            storage = self.storages.find(tensor)
            if storage is not None:
                stack = user_frames.stack_of_caller() if stack is None else stack
                storage.origin = op.name, stack
