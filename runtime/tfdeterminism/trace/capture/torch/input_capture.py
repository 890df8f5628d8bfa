"""Keeps the inputs of one op, once, before it may write into them."""

import torch

from . import digests


class TorchInputCapture(object):
    """capture: an input_capture.InputCapture."""

    def __init__(self, capture):
        self._capture = capture

    def snapshot(self, node, op, args, kwargs):
        """What keep() takes, if it is this op that is wanted; else None."""
        if not self._capture.is_wanted("", 0, node):
            return None
        tensors = []
        meta = {"op": op, "framework": "torch", "args": _to_json(list(args), tensors),
                "kwargs": _to_json(dict(kwargs), tensors)}
        meta["strides"] = [list(one.stride()) for one in tensors if one.layout is torch.strided]
        values = [None if one.layout is not torch.strided else digests.to_contiguous_cpu(one).clone()
                  for one in tensors]
        return meta, tensors, values

    def save(self, key, kept):
        """The op has run."""
        meta, tensors, values = kept
        arrays = [None if one is None else one.reshape(-1).view(torch.uint8).numpy() for one in values]
        self._capture.on_op_run(key, dict(meta, dtypes=[digests.dtype_of(one) for one in tensors],
                                    shapes=[list(one.shape) for one in tensors],
                                    devices=[str(one.device) for one in tensors],
                                    device=str(tensors[0].device) if tensors else ""), arrays)


def _to_json(value, tensors):
    """An argument as JSON; tensors: those met are added."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, (list, tuple)):
        return [_to_json(one, tensors) for one in value]
    if isinstance(value, dict):
        return {"named": {name: _to_json(one, tensors) for name, one in value.items()}}
    for name in ("dtype", "layout", "memory_format", "device"):
        if isinstance(value, getattr(torch, name)):
            return {name: str(value).replace("torch.", "")}
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"unknown": str(value)}


def from_json(value, tensors):
    """The argument that was described. Raises ValueError for what cannot be."""
    if isinstance(value, list):
        return [from_json(one, tensors) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (kind, said), = value.items()
        if kind == "tensor":
            return tensors[said]
        if kind == "named":
            return {name: from_json(one, tensors) for name, one in said.items()}
        if kind == "device":
            return torch.device(said)
        made = getattr(torch, said, None) if kind in ("dtype", "layout", "memory_format") else None
        if made is not None and isinstance(made, getattr(torch, kind)):
            return made
    raise ValueError("cannot capture argument: {}".format(value))


def tensor_of(data, dtype, shape, stride, device):
    """Of raw bytes, on the device that had it. dtype: its name."""
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ValueError("no type of numbers: {}".format(dtype))
    made = torch.from_numpy(data.copy()).view(kind).reshape(shape)
    if 0 in stride:
        return torch.empty(shape, dtype=kind, device=device).copy_(made)
    return torch.empty_strided(shape, stride, dtype=kind, device=device).copy_(made)
