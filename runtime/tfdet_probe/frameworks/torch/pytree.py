"""The leaves of nested inputs and outputs (pytrees), and their bytes."""

import numpy as np
import torch


def leaves(value):
    # type: (object) -> list
    """Tensors and other values, in order; dicts in the order of their keys."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def tensors(value):
    # type: (object) -> list[torch.Tensor]
    """The leaves that are tensors."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]


def arrays(value):
    # type: (object) -> list[np.ndarray]
    """The leaves as NumPy arrays; a value without bytes (None, a dtype) becomes its name."""
    return [array for leaf in leaves(value) for array in _arrays(leaf)]


def _arrays(leaf):
    if not isinstance(leaf, torch.Tensor):
        return [np.asarray(leaf if isinstance(leaf, (bool, int, float, complex, str)) else str(leaf))]
    tensor = leaf.detach()
    if tensor.layout == torch.sparse_coo:
        return arrays([tensor._indices(), tensor._values(), list(tensor.shape)])
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return arrays([tensor.crow_indices(), tensor.col_indices(), tensor.values(), list(tensor.shape)])
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return arrays([tensor.ccol_indices(), tensor.row_indices(), tensor.values(), list(tensor.shape)])
    if tensor.is_quantized:
        return arrays(tensor.int_repr())
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if hasattr(torch, "_efficientzerotensor") and tensor._is_zerotensor():  # zeros without storage
        tensor = tensor.clone()
    if tensor.dtype in _AS_INTEGERS:
        return [tensor.contiguous().view(_AS_INTEGERS[tensor.dtype]).numpy()]
    return [tensor.numpy()]


# Types that NumPy lacks are compared as integers with the same bits.
_AS_INTEGERS = {torch.bfloat16: torch.int16}
_AS_INTEGERS.update((getattr(torch, name), torch.uint8) for name in dir(torch) if name.startswith("float8_"))
if hasattr(torch, "complex32"):
    _AS_INTEGERS[torch.complex32] = torch.int32
