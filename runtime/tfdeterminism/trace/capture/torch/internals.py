"""The internal functions of PyTorch that the probes use, for all versions from 2.0 on."""

from typing import TYPE_CHECKING

import torch
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: F401  (for storage.py)
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:  # for type comments alone
    from typing import Any  # noqa: F401

TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_NO_TENSORS = frozenset((int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout))
_node = getattr(torch._C, "_current_autograd_node", None)
_sequence = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)


def current_sequence_nr():
    """Return the number of the forward op whose gradient this thread computes now, or None."""
    node = _node() if _node is not None else None
    number = getattr(node, "_sequence_nr", None)
    return None if number is None else number()


def in_backward():
    """Return whether this thread computes gradients now."""
    return _node is not None and _node() is not None


def last_sequence_nr():
    """Return the number that autograd gave to the latest differentiable op; -1 for none."""
    return _sequence() - 1 if _sequence is not None else -1


class DispatchMode(TorchDispatchMode):
    """A TorchDispatchMode that does not need to disable a compiler at each op: nothing is compiled meanwhile."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False


def differentiated(args, kwargs):
    """Return what torch.autograd.backward or grad is to differentiate, of their arguments."""
    return args[0] if args else kwargs.get("tensors", kwargs.get("outputs", ()))


def tensors_in(value):
    """Return all tensors of nested lists, tuples and dicts, in a fixed order."""
    if type(value) is torch.Tensor:
        return [value]
    tensors = []  # type: list[Any]
    _collect((value,), tensors)
    return tensors


def _collect(values, tensors):
    for element in values:
        element_type = type(element)
        if element_type in TENSORS:
            tensors.append(element)
        elif element_type in _NO_TENSORS:
            pass
        elif isinstance(element, torch.Tensor):
            tensors.append(element)
        elif isinstance(element, (list, tuple)):
            _collect(element, tensors)
        elif isinstance(element, dict):
            _collect(element.values(), tensors)
