"""Runs one op again on inputs that a trace kept."""

import torch

from . import digests, kept, ops


def is_harmless(name):
    """Is it one of ATen's ops that make numbers from numbers, and do nothing else?"""
    return ops.found(name) is not None


def run(meta, arrays, times):
    """[per output: [digest of each run]]. meta, arrays: as replay.load() gives them; of a harmless op."""
    function = ops.found(meta["op"])
    op = ops.Op(function)
    results = []
    with torch.no_grad():
        for _ in range(times):
            tensors = [kept.tensor_of(data, dtype, shape, stride)
                       for (data, shape), dtype, stride in zip(arrays, meta["dtypes"], meta["strides"])]
            args, kwargs = kept.rebuilt(meta["args"], tensors), kept.rebuilt(meta["kwargs"], tensors)
            given = op.given(args, kwargs, function(*args, **kwargs))
            results.append([digests.of(one) for one in given])
    return [list(one) for one in zip(*results)]
