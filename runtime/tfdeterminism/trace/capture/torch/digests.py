"""A digest of a tensor's elements in their logical order, whatever their strides and where they lie."""

import ctypes

import torch

from .. import digest
from . import internals as pt

_names = {}  # of types


def digest_tensor(tensor):
    """An unsigned integer of 64 bits; None for a tensor without elements of its own (meta, fake)."""
    if type(tensor) not in pt.TENSORS or tensor.is_meta:
        return None
    if tensor.layout is not torch.strided:
        return _digest_sparse(tensor)
    plain = tensor if _is_contiguous_cpu(tensor) else to_contiguous_cpu(tensor)
    size = plain.numel() * plain.element_size()
    if size < digest.SMALL:
        data = ctypes.string_at(plain.data_ptr(), size) if size else b""
    else:
        data = (ctypes.c_char * size).from_address(plain.data_ptr())
    return digest.digest_bytes(data, dtype_of(tensor))


def _is_contiguous_cpu(tensor):
    """Do its elements lie one after another in memory of the CPU, as they are? Asked of each: few calls."""
    return tensor.is_cpu and tensor.is_contiguous() and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def to_contiguous_cpu(tensor):
    """Its elements one after another, in memory of the CPU."""
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    return plain.cpu().resolve_conj().resolve_neg().contiguous()


def array_of(tensor):
    """The same as an array; types that NumPy lacks as float32."""
    plain = to_contiguous_cpu(tensor.to_dense() if tensor.layout is not torch.strided else tensor)
    try:
        return plain.numpy()
    except TypeError:  # bfloat16 and the floats of 8 bits
        return plain.float().numpy()


def dtype_of(tensor):
    """The name of its type, as NumPy's are."""
    kind = tensor.dtype
    name = _names.get(kind)
    if name is None:
        name = _names[kind] = str(kind).replace("torch.", "")
    return name


def _digest_sparse(tensor):
    if tensor.layout is not torch.sparse_coo:
        return digest.digest_array(array_of(tensor))
    parts = {"indices": digest_tensor(tensor._indices()), "values": digest_tensor(tensor._values())}
    return int(digest.digest_parts(parts), 16)
