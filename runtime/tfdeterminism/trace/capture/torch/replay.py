"""Runs one op again on inputs that a trace kept."""

import torch

from ... import errors
from . import digests, input_capture, ops


def is_pure(name):
    """Is it one of ATen's ops that make numbers from numbers, and do nothing else?"""
    return ops.resolve(name) is not None


def run(meta, arrays, times):
    """[per output: [digest of each run]]. meta, arrays: as replay.load() gives them; of a harmless op. It runs where it
    has run: that it repeats itself elsewhere would say nothing. Raises UsageError where that device is not here."""
    for device in sorted(set(meta["devices"])):
        _require_device(device)
    function = ops.resolve(meta["op"])
    op = ops.OpSchema(function)
    results = []
    with torch.no_grad():
        for _ in range(times):
            tensors = [input_capture.tensor_of(data, dtype, shape, stride, device)
                       for (data, shape), dtype, stride, device
                       in zip(arrays, meta["dtypes"], meta["strides"], meta["devices"])]
            args, kwargs = (input_capture.from_json(meta[name], tensors) for name in ("args", "kwargs"))
            given = op.outputs(args, kwargs, function(*args, **kwargs))
            results.append([digests.digest_tensor(one) for one in given])
    if any(None in one for one in results):
        raise ValueError("what it gives has no value that could be compared")
    return [list(one) for one in zip(*results)]


def _require_device(device):
    """BadUsage unless this machine has that device. PyTorch says in many ways that it has not."""
    try:
        torch.empty(1, device=device)
    except Exception as error:
        raise errors.UsageError("it ran on {}, which is not here ({}), and another device says nothing of it".format(
            device, str(error).splitlines()[0]), "replay it on the machine that recorded it")
