"""PyTorch's own, at the places where its versions (2.0 and later) keep them."""

from typing import TYPE_CHECKING

import torch
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: F401  (for memory.py)
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:  # for type comments alone
    from typing import Any  # noqa: F401

TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_NO_TENSORS = frozenset((int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout))
_node = getattr(torch._C, "_current_autograd_node", None)
_sequence = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)


def current_sequence_nr():
    """The number of the forward op whose gradient this thread computes now, or None."""
    node = _node() if _node is not None else None
    number = getattr(node, "_sequence_nr", None)
    return None if number is None else number()


def in_backward():
    """Does this thread compute gradients now?"""
    return _node is not None and _node() is not None


def last_sequence_nr():
    """The number that autograd gave to the latest op whose gradient it may be asked for; -1 for none."""
    return _sequence() - 1 if _sequence is not None else -1


class DispatchMode(TorchDispatchMode):
    """What sees each op. While it is there nothing is compiled, and no compiler has to be kept away at each op."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False


def tensors_in(value):
    """All tensors of nested lists, tuples and dicts, in a fixed order."""
    if type(value) is torch.Tensor:
        return [value]
    found = []  # type: list[Any]
    _collect((value,), found)
    return found


def _collect(values, found):
    for one in values:
        kind = type(one)
        if kind in TENSORS:
            found.append(one)
        elif kind in _NO_TENSORS:
            pass
        elif isinstance(one, torch.Tensor):
            found.append(one)
        elif isinstance(one, (list, tuple)):
            _collect(one, found)
        elif isinstance(one, dict):
            _collect(one.values(), found)
