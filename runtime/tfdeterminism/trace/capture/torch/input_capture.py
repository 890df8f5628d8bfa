"""The capture of the inputs of one PyTorch op, before the op may write into them."""

import torch

from . import digests


class TorchInputCapture(object):
    """The capture of an op's inputs. capture: an input_capture.InputCapture."""

    def __init__(self, capture):
        self._capture = capture

    def snapshot(self, node, op, args, kwargs):
        """Return the data for save() if this op is wanted, else None."""
        if not self._capture.is_wanted("", 0, node):  # "", 0: in no graph function
            return None
        tensors = []
        meta = {"op": op, "framework": "torch", "args": _to_json(list(args), tensors),
                "kwargs": _to_json(dict(kwargs), tensors)}
        meta["strides"] = [list(tensor.stride()) for tensor in tensors if tensor.layout is torch.strided]
        values = [None if tensor.layout is not torch.strided else digests.to_contiguous_cpu(tensor).clone()
                  for tensor in tensors]
        return meta, tensors, values

    def save(self, key, snapshot):
        """Store a snapshot after the op has run."""
        meta, tensors, values = snapshot
        arrays = [None if value is None else value.reshape(-1).view(torch.uint8).numpy() for value in values]
        self._capture.on_op_run(key, dict(meta, dtypes=[digests.dtype_of(tensor) for tensor in tensors],
                                          shapes=[list(tensor.shape) for tensor in tensors],
                                          devices=[str(tensor.device) for tensor in tensors],
                                          device=str(tensors[0].device) if tensors else ""), arrays)


def _to_json(value, tensors):
    """Return an argument as JSON. tensors: a list to which the tensors in it are appended."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, (list, tuple)):
        return [_to_json(element, tensors) for element in value]
    if isinstance(value, dict):
        return {"named": {name: _to_json(element, tensors) for name, element in value.items()}}
    for name in ("dtype", "layout", "memory_format", "device"):
        if isinstance(value, getattr(torch, name)):
            return {name: str(value).replace("torch.", "")}
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"unknown": str(value)}


def from_json(value, tensors):
    """Return the argument that _to_json() described. Raises ValueError if there is none."""
    if isinstance(value, list):
        return [from_json(element, tensors) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (kind, content), = value.items()
        if kind == "tensor":
            return tensors[content]
        if kind == "named":
            return {name: from_json(element, tensors) for name, element in content.items()}
        if kind == "device":
            return torch.device(content)
        constant = getattr(torch, content, None) if kind in ("dtype", "layout", "memory_format") else None
        if constant is not None and isinstance(constant, getattr(torch, kind)):
            return constant
    raise ValueError("cannot capture argument: {}".format(value))


def tensor_of(data, dtype, shape, stride, device):
    """Return the tensor of raw bytes, on the device that had it. dtype: its name."""
    torch_dtype = getattr(torch, dtype, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise ValueError("no type of numbers: {}".format(dtype))
    tensor = torch.from_numpy(data.copy()).view(torch_dtype).reshape(shape)
    if 0 in stride:  # an expanded tensor, whose elements share memory, cannot be written
        return torch.empty(shape, dtype=torch_dtype, device=device).copy_(tensor)
    return torch.empty_strided(shape, stride, dtype=torch_dtype, device=device).copy_(tensor)
