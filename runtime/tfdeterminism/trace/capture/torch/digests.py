"""A digest of a tensor's elements in their logical order, whatever their strides and where they lie."""

import ctypes

import torch

from .. import digest
from . import internals as pt

_names = {}  # of types


def of(tensor):
    """An unsigned integer of 64 bits; None for a tensor without elements of its own (meta, fake)."""
    if type(tensor) not in pt.TENSORS or tensor.is_meta:
        return None
    if tensor.layout is not torch.strided:
        return _of_sparse(tensor)
    plain = tensor if _lies_there(tensor) else laid_out(tensor)
    size = plain.numel() * plain.element_size()
    if size < digest.SMALL:
        data = ctypes.string_at(plain.data_ptr(), size) if size else b""
    else:
        data = (ctypes.c_char * size).from_address(plain.data_ptr())
    return digest.of_bytes(data, dtype_of(tensor))


def _lies_there(tensor):
    """Do its elements lie one after another in memory of the CPU, as they are? Asked of each: few calls."""
    return tensor.is_cpu and tensor.is_contiguous() and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


def laid_out(tensor):
    """Its elements one after another, in memory of the CPU."""
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.int_repr()
    return plain.cpu().resolve_conj().resolve_neg().contiguous()


def array_of(tensor):
    """The same as an array; types that NumPy lacks as float32."""
    plain = laid_out(tensor.to_dense() if tensor.layout is not torch.strided else tensor)
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


def _of_sparse(tensor):
    if tensor.layout is not torch.sparse_coo:
        return digest.of_array(array_of(tensor))
    parts = {"indices": of(tensor._indices()), "values": of(tensor._values())}
    return int(digest.of_parts(parts), 16)
