"""The forward ops of backward ops, the losses, and the ends of steps in programs without an optimizer."""

import torch

from . import digests
from . import internals as pt

_LIMIT = 1 << 16  # forward ops that are kept


class Gradients(object):
    """The sequence numbers that autograd gives to forward ops; a backward op has the number of its forward op."""

    def __init__(self, recorder, storages, wrappers):
        self._recorder, self._storages = recorder, storages
        self._by_number = {}
        self.on_loss = None  # called with (tensor, its index among the losses)
        for name in ("backward", "grad"):
            wrappers.wrap(torch.autograd, name, self._on_backward)

    def on_op_run(self, key):
        """Note the sequence number of an op that has run. key: the id of its first output in the trace."""
        if not torch.is_grad_enabled():  # the fastest test comes first
            return
        number = pt.last_sequence_nr()
        if number >= 0 and number not in self._by_number and not pt.in_backward():
            if len(self._by_number) >= _LIMIT:
                self._by_number.clear()
            self._by_number[number] = self._recorder.eager.describe(key)

    def forward_op(self):
        """Return (node, stack) of the forward op whose gradient is computed now, or (None, [])."""
        return self._by_number.get(pt.current_sequence_nr(), (None, []))

    def _on_backward(self, original, *args, **kwargs):
        is_nested = getattr(self._recorder.local, "in_backward_call", False)  # backward() may call grad()
        if self._recorder.active and not is_nested:
            self._recorder.steps.on_gradient()
            self._record_losses(pt.differentiated(args, kwargs))
        self._recorder.local.in_backward_call = True
        try:
            return original(*args, **kwargs)
        finally:
            self._recorder.local.in_backward_call = is_nested

    def _record_losses(self, tensors):
        for number, tensor in enumerate(pt.tensors_in(tensors)):
            storage = self._storages.find(tensor)
            if storage is not None and storage.keys:
                self._recorder.eager.add_attrs(storage.keys[-1], loss=True)
            if self.on_loss is not None:
                self.on_loss(tensor, number)
            values = self._recorder.values
            if values is not None and values.is_due():
                with self._recorder.unrecorded():
                    name = values.loss_name(self._recorder.eager.next_occurrence("loss"))
                    values.record_loss(name, digests.array_of(tensor))
