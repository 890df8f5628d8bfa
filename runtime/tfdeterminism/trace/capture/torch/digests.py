"""Digests of a tensor's elements in their logical order, independent of strides and device."""

import ctypes

import torch

from .. import digest
from . import internals as pt

_names = {}  # {dtype: name}


def digest_tensor(tensor):
    """Return an unsigned 64-bit integer; None for a tensor without elements of its own (meta, fake)."""
    if type(tensor) not in pt.TENSORS or tensor.is_meta:
        return None
    if tensor.layout is not torch.strided:
        return _digest_sparse(tensor)
    contiguous = tensor if _is_contiguous_cpu(tensor) else to_contiguous_cpu(tensor)
    size = contiguous.numel() * contiguous.element_size()
    if size < digest.SMALL:
        data = ctypes.string_at(contiguous.data_ptr(), size) if size else b""
    else:
        data = (ctypes.c_char * size).from_address(contiguous.data_ptr())
    return digest.digest_bytes(data, dtype_of(tensor))


def _is_contiguous_cpu(tensor):
    """Return whether the elements lie contiguously in CPU memory. This runs for each tensor: few calls."""
    return tensor.is_cpu and tensor.is_contiguous() and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def to_contiguous_cpu(tensor):
    """Return the tensor with its elements contiguous in CPU memory."""
    detached = tensor.detach()
    if detached.is_quantized:
        detached = detached.int_repr()
    return detached.cpu().resolve_conj().resolve_neg().contiguous()


def array_of(tensor):
    """Return the elements as an array; types that NumPy lacks are converted to float32."""
    contiguous = to_contiguous_cpu(tensor.to_dense() if tensor.layout is not torch.strided else tensor)
    try:
        return contiguous.numpy()
    except TypeError:  # bfloat16 and 8-bit floats
        return contiguous.float().numpy()


def dtype_of(tensor):
    """Return the name of the dtype, as NumPy spells it."""
    dtype = tensor.dtype
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype).replace("torch.", "")
    return name


def _digest_sparse(tensor):
    if tensor.layout is not torch.sparse_coo:
        return digest.digest_array(array_of(tensor))
    part_digests = {"indices": digest_tensor(tensor._indices()), "values": digest_tensor(tensor._values())}
    return int(digest.digest_parts(part_digests), 16)
