"""PyTorch's own, at the places where its versions (2.0 and later) keep them."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: F401  (for memory.py)
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: F401  (for dispatch.py)

_node = getattr(torch._C, "_current_autograd_node", None)
_sequence = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)


def gradient_of():
    """The number of the forward op whose gradient this thread computes now, or None."""
    node = _node() if _node is not None else None
    number = getattr(node, "_sequence_nr", None)
    return None if number is None else number()


def in_gradient():
    """Does this thread compute gradients now?"""
    return _node is not None and _node() is not None


def last_number():
    """The number that autograd gave to the latest op whose gradient it may be asked for; -1 for none."""
    return _sequence() - 1 if _sequence is not None else -1


def tensors_in(value):
    """All tensors of nested lists, tuples and dicts, in a fixed order."""
    found = []
    _collect(value, found)
    return found


def _collect(value, found):
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _collect(one, found)
    elif isinstance(value, dict):
        for name in value:
            _collect(value[name], found)
