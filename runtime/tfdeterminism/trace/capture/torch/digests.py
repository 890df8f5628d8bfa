"""A digest of a tensor's elements in their logical order, whatever their strides and where they lie."""

import ctypes

import torch

from .. import digest


def of(tensor):
    """An unsigned integer of 64 bits; None for a tensor without elements of its own (meta, fake)."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_meta:
        return None
    if tensor.layout is not torch.strided:
        return _of_sparse(tensor)
    plain = laid_out(tensor)
    size = plain.numel() * plain.element_size()
    data = (ctypes.c_char * size).from_address(plain.data_ptr()) if size else b""
    return digest.of_bytes(data, dtype_of(tensor))


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
    return str(tensor.dtype).replace("torch.", "")


def _of_sparse(tensor):
    if tensor.layout is not torch.sparse_coo:
        return digest.of_array(array_of(tensor))
    parts = {"indices": of(tensor._indices()), "values": of(tensor._values())}
    return int(digest.of_parts(parts), 16)
