"""Each op of PyTorch on the sample inputs that PyTorch's own tests use; one source an op.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder, returns
what is run: make.samples(generate, function) runs function(generate(device)).
"""

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


# Beside the first: an op is run in each of these that it takes, forward and, where that has one, its gradient.
OTHER_DTYPES = ("float64", "bfloat16", "float16", "complex64", "int64")


def taking(dtype):
    """The ops that take it on some device, and are not run in it anyway."""
    wanted = getattr(torch, dtype)
    kinds = {key: info.supported_dtypes("cpu") | info.supported_dtypes("cuda") for key, info in OPS.items()}
    return [key for key in sorted(OPS) if wanted in kinds[key] and dtype_of(OPS[key], "cpu") != wanted]


def samples_in(info, device, dtype):
    kind = torch.device(device).type
    if dtype not in info.supported_dtypes(kind):
        raise NotImplementedError("it does not take {} here".format(dtype))
    found = list(info.sample_inputs(device, dtype, requires_grad=has_gradient(info, kind, dtype)))
    if not found:
        raise NotImplementedError("PyTorch ships no sample inputs of it")
    return found


def has_gradient(info, kind, dtype):
    return info.supports_autograd and dtype in info.supported_backward_dtypes(kind)


def both_ways(make, info, call, sample):
    """What call(input, ...) gives, and its gradient where it has one."""
    called = call(sample.input, *sample.args, **sample.kwargs)
    outputs = [tensor for tensor in tensors(sample.output_process_fn_grad(called)) if tensor.requires_grad]
    inputs = [tensor for tensor in tensors([sample.input, sample.args, sample.kwargs]) if tensor.requires_grad]
    if not outputs or not inputs:
        return [called]
    upstream = [upstream_of(make, tensor) for tensor in outputs]
    return [called, torch.autograd.grad(outputs, inputs, upstream, allow_unused=True)]


def in_dtype(make, op, dtype):
    info = OPS[op]

    def call(*args, **kwargs):
        return info.gradcheck_wrapper(info.op, *args, **kwargs)

    def some(device):
        found = samples_in(info, device, dtype)
        return found[::1 + (len(found) - 1) // MOST]

    return make.samples(some, lambda samples: [both_ways(make, info, call, sample) for sample in samples])


@case("torch-{op}", ops=[".*"], modes=["eager"], op=taking("float64"))
def samples_in_float64(make, op):
    return in_dtype(make, op, torch.float64)


@case("torch-{op}", ops=[".*"], modes=["eager"], op=taking("bfloat16"))
def samples_in_bfloat16(make, op):
    return in_dtype(make, op, torch.bfloat16)


@case("torch-{op}", ops=[".*"], modes=["eager"], op=taking("float16"))
def samples_in_float16(make, op):
    return in_dtype(make, op, torch.float16)


@case("torch-{op}", ops=[".*"], modes=["eager"], op=taking("complex64"))
def samples_in_complex64(make, op):
    return in_dtype(make, op, torch.complex64)


@case("torch-{op}", ops=[".*"], modes=["eager"], op=taking("int64"))
def samples_in_int64(make, op):
    return in_dtype(make, op, torch.int64)


@case("torch-{op}", ops=[".*"], modes=["compiled"], op=sorted(OPS))
def largest_sample(make, op):
    """To compile takes seconds: of its samples the one with the most elements, in the dtype that the others have."""
    info = OPS[op]
    wrapper, function = info.gradcheck_wrapper, info.op

    def call(*args, **kwargs):
        return wrapper(function, *args, **kwargs)

    whole = torch.compile(call, fullgraph=True)

    def largest(device):
        dtype = dtype_of(info, torch.device(device).type)
        if dtype is None:
            raise NotImplementedError("it takes none of the dtypes that are tried")
        return [max(samples_in(info, device, dtype), key=elements)]

    return make.samples(largest, lambda samples: [both_ways(make, info, whole, sample) for sample in samples])


def elements(sample):
    return sum(tensor.numel() for tensor in tensors([sample.input, sample.args, sample.kwargs]))
