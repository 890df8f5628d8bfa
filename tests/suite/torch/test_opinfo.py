"""Each op of PyTorch on the sample inputs that PyTorch's own tests use; one source an op."""

import re

import torch
from tfdet_probe import case
from torch.testing._internal.common_methods_invocations import op_db

MOST = 40  # samples of an op; where it has more, some from all over them
DTYPES = (torch.float32, torch.complex64, torch.int64, torch.int32)  # an op is run in the first that it takes


def key_of(info):
    """Case and underscores matter to PyTorch (T and t, __rsub__ and rsub), and are not told apart in a key."""
    name = re.sub(r"__(\w+)__", r"dunder \1", info.name + " " + info.variant_test_name)
    name = re.sub(r"([A-Z]+)", r" capital \1", name)
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


OPS = {key_of(info): info for info in op_db}


def dtype_of(info, kind):
    return next((dtype for dtype in DTYPES if dtype in info.supported_dtypes(kind)), None)


def samples_of(info, device, backward):
    kind = torch.device(device).type
    dtype = dtype_of(info, kind)
    if dtype is None:
        raise NotImplementedError("it takes none of the dtypes that are tried")
    if backward and not (info.supports_autograd and dtype in info.supported_backward_dtypes(kind)):
        raise NotImplementedError("it has no gradient for {}".format(dtype))
    found = list(info.sample_inputs(device, dtype, requires_grad=backward))
    if not found:
        raise NotImplementedError("PyTorch ships no sample inputs of it")
    return found[::1 + (len(found) - 1) // MOST]


def forward(info, sample):
    return info.op(sample.input, *sample.args, **sample.kwargs)


def tensors(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors(part)]
    return [value] if isinstance(value, torch.Tensor) else []


def backward(make, info, sample):
    called = info.gradcheck_wrapper(info.op, sample.input, *sample.args, **sample.kwargs)
    outputs = [tensor for tensor in tensors(sample.output_process_fn_grad(called)) if tensor.requires_grad]
    inputs = [tensor for tensor in tensors([sample.input, sample.args, sample.kwargs]) if tensor.requires_grad]
    if not outputs or not inputs:
        return []
    upstream = [upstream_of(make, tensor) for tensor in outputs]
    return torch.autograd.grad(outputs, inputs, upstream, allow_unused=True)


def upstream_of(make, tensor):
    given = torch.from_numpy(make.upstream(tuple(tensor.shape), "float64")).to(tensor.device, tensor.dtype)
    return given.to_sparse() if tensor.is_sparse else given


@case("torch-{op}", ops=[".*"], modes=["eager"], op=sorted(OPS))
def samples_forward(make, op):
    info = OPS[op]
    return make.samples(lambda device: samples_of(info, device, False),
                        lambda samples: [forward(info, sample) for sample in samples])


@case("torch-{op}", ops=[".*"], modes=["eager"], op=sorted(OPS))
def samples_backward(make, op):
    info = OPS[op]
    return make.samples(lambda device: samples_of(info, device, True),
                        lambda samples: [backward(make, info, sample) for sample in samples])
