"""The replay of one op on the inputs that a trace stores."""

import torch

from ... import errors
from . import digests, input_capture, ops


def is_pure(name):
    """Return whether it is an op of ATen that computes numbers from numbers, and does nothing else."""
    return ops.resolve(name) is not None


def run(meta, arrays, times):
    """Run a pure op several times and return [per output: [digest of each run]].

    meta, arrays: the result of replay.load(). The op runs on the device that recorded it, because its result on
    another device would say nothing. Raises UsageError if this machine lacks the device.
    """
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
            outputs = op.outputs(args, kwargs, function(*args, **kwargs))
            results.append([digests.digest_tensor(tensor) for tensor in outputs])
    if any(None in run_digests for run_digests in results):
        raise ValueError("what it gives has no value that could be compared")
    return [list(output_digests) for output_digests in zip(*results)]


def _require_device(device):
    """Raise UsageError unless this machine has the device. PyTorch's own errors have many types."""
    try:
        torch.empty(1, device=device)
    except Exception as error:
        raise errors.UsageError("it ran on {}, which is not here ({}), and another device says nothing of it".format(
            device, str(error).splitlines()[0]), "replay it on the machine that recorded it")
