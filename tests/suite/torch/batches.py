"""Ops in batches, for `python -m tfdet_probe.core.batches`: is a row the same alone and in company?

What is drawn is drawn on the processor, in float64, from seeds: the same values on every device.
"""

import math

import torch
from torch.nn import functional

DTYPES = ("float32", "float64", "bfloat16", "float16")
CASES = {}
DEVICE = "cpu"  # where the command names none
_PARAMETERS = 77  # seed of the weights that draw() gives


# control: whether the op depends on its batch by construction.  rows: random inputs of `count` rows; joined: a row put
# among others; part: the output of one row; apart: the largest difference of two outputs.
class Case(object):
    """One op, shape and dtype.  inputs: (kind, shape of a row) each; make(drawn) gives what is called with them."""

    def __init__(self, op, shape, dtype, inputs, make, control):
        self.op, self.shape, self.dtype, self.control = op, shape, dtype, control
        self._inputs, self._make, self._device, self._call = inputs, make, "cpu", None

    def on(self, device):
        found = Case(self.op, self.shape, self.dtype, self._inputs, self._make, self.control)
        found._device = device
        generator = torch.Generator().manual_seed(_PARAMETERS)
        found._call = self._make(lambda *shape: found._drawn("float", shape, generator))
        return found

    def rows(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        return [self._drawn(kind, (count,) + tuple(shape), generator) for kind, shape in self._inputs]

    def _drawn(self, kind, shape, generator):
        if kind == "float":
            return self._given(torch.randn(shape, generator=generator, dtype=torch.float64))
        return torch.randint(0, kind, shape, generator=generator).to(self._device)

    def _given(self, tensor):
        return tensor.to(getattr(torch, self.dtype)).to(self._device)

    def run(self, batch):
        with torch.no_grad():
            return self._call(*batch)

    @staticmethod
    def first(batch, count):
        return [tensor[:count] for tensor in batch]

    @staticmethod
    def joined(others, row, at):
        return [torch.cat([some[:at], one, some[at:]]) for some, one in zip(others, row)]

    @staticmethod
    def part(out, at):
        return out[at].clone()

    @staticmethod
    def bytes_of(part):
        return part.contiguous().reshape(-1).view(torch.uint8).cpu().numpy().tobytes()

    @staticmethod
    def apart(one, other):
        return float((one.double() - other.double()).abs().max())


def told(device):
    """What ran: framework, device, and what decides which kernels a processor takes."""
    kind = torch.device(device).type
    libraries = " ".join(name for name, there in _libraries(kind) if there)
    machine = {"capability": torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends, "cpu") else "unknown",
               "libraries": libraries, "threads": torch.get_num_threads()}
    return {"framework": {"name": "torch", "version": torch.__version__}, "machine": machine,
            "device": "cpu" if kind == "cpu" else torch.cuda.get_device_name(device)}


def _libraries(kind):
    if kind == "cpu":
        return [("MKL", torch.backends.mkl.is_available()), ("oneDNN", torch.backends.mkldnn.is_available())]
    return [("CUDA {}".format(torch.version.cuda), True), ("cuDNN {}".format(torch.backends.cudnn.version()), True)]


use_threads = torch.set_num_threads


def case(op, shape, inputs, control=False, dtypes=DTYPES):
    """Decorates make(draw): draw(*shape) is a parameter; it returns what is called with the inputs."""
    def add(make):
        for dtype in dtypes:
            key = "{}-{}-{}".format(op, shape, dtype)
            CASES[key] = Case(op, shape, dtype, inputs, make, control)
        return make
    return add


def _of(*shape):
    return [("float", shape)]


for _k, _n in ((64, 64), (513, 257), (768, 768), (4096, 32)):
    @case("matmul", "{}x{}".format(_k, _n), _of(_k))
    def matmul(draw, k=_k, n=_n):
        weight = draw(k, n)
        return lambda x: torch.matmul(x, weight)

for _k, _n in ((64, 10), (768, 3072)):
    @case("linear", "{}x{}".format(_k, _n), _of(_k))
    def linear(draw, k=_k, n=_n):
        weight, bias = draw(n, k), draw(n)
        return lambda x: functional.linear(x, weight, bias)

    @case("linear-without-bias", "{}x{}".format(_k, _n), _of(_k))
    def linear_without_bias(draw, k=_k, n=_n):
        weight = draw(n, k)
        return lambda x: functional.linear(x, weight)


@case("linear-of-sequences", "9x256x256", _of(9, 256))
def linear_of_sequences(draw):
    weight, bias = draw(256, 256), draw(256)
    return lambda x: functional.linear(x, weight, bias)


for _l, _k, _m in ((1, 64, 33), (17, 64, 33)):
    @case("bmm", "{}x{}x{}".format(_l, _k, _m), [("float", (_l, _k)), ("float", (_k, _m))])
    def bmm(draw):
        return torch.bmm


@case("conv1d", "16to32-50", _of(16, 50))
def conv1d(draw):
    weight, bias = draw(32, 16, 3), draw(32)
    return lambda x: functional.conv1d(x, weight, bias, padding=1)


for _c, _o, _s, _g in ((3, 16, 16, 1), (32, 32, 8, 1), (32, 32, 8, 32)):
    @case("conv2d" if _g == 1 else "conv2d-depthwise", "{}to{}-{}x{}".format(_c, _o, _s, _s), _of(_c, _s, _s))
    def conv2d(draw, c=_c, o=_o, g=_g):
        weight, bias = draw(o, c // g, 3, 3), draw(o)
        return lambda x: functional.conv2d(x, weight, bias, padding=1, groups=g)


for _f in (513, 768):
    @case("layer_norm", str(_f), _of(_f))
    def layer_norm(draw, f=_f):
        weight, bias = draw(f), draw(f)
        return lambda x: functional.layer_norm(x, (f,), weight, bias)

    @case("rms_norm", str(_f), _of(_f))
    def rms_norm(draw, f=_f):
        weight = draw(f)
        return lambda x: functional.rms_norm(x, (f,), weight)


@case("group_norm", "8of32-8x8", _of(32, 8, 8))
def group_norm(draw):
    weight, bias = draw(32), draw(32)
    return lambda x: functional.group_norm(x, 8, weight, bias)


@case("batch_norm-eval", "32-8x8", _of(32, 8, 8))
def batch_norm_eval(draw):
    mean, variance, weight, bias = draw(32), draw(32).abs() + 0.5, draw(32), draw(32)
    return lambda x: functional.batch_norm(x, mean, variance, weight, bias)


@case("batch_norm-training", "32-8x8", _of(32, 8, 8), control=True)
def batch_norm_training(draw):
    """The control: it takes mean and variance of the batch, and has to be seen to depend on it."""
    return lambda x: functional.batch_norm(x, None, None, training=True)


for _f in (1000, 8192):
    @case("softmax", str(_f), _of(_f))
    def softmax(draw):
        return lambda x: functional.softmax(x, -1)

    @case("log_softmax", str(_f), _of(_f))
    def log_softmax(draw):
        return lambda x: functional.log_softmax(x, -1)


for _f in (1000, 4097):
    @case("sum", str(_f), _of(_f))
    def sum_of_features(draw):
        return lambda x: x.sum(-1)

    @case("mean", str(_f), _of(_f))
    def mean_of_features(draw):
        return lambda x: x.mean(-1)


for _f in (7, 1001):
    @case("gelu", str(_f), _of(_f))
    def gelu(draw):
        return functional.gelu

    @case("silu", str(_f), _of(_f))
    def silu(draw):
        return functional.silu


for _l in (33, 128):
    @case("attention", "{}x64".format(_l), [("float", (1, _l, 64))] * 3)
    def attention(draw):
        return functional.scaled_dot_product_attention


@case("attention-causal", "33x64", [("float", (1, 33, 64))] * 3)
def attention_causal(draw):
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@case("embedding", "1000x64", [(1000, (9,))])
def embedding(draw):
    table = draw(1000, 64)
    return lambda index: functional.embedding(index, table)


@case("cross_entropy-none", "1000", [("float", (1000,)), (1000, ())])
def cross_entropy(draw):
    return lambda x, target: functional.cross_entropy(x, target, reduction="none")


def _recurrent(kind):
    def make(draw):
        example = draw(1)
        layer = kind(32, 64, batch_first=True).to(example.device, example.dtype)
        for parameter in layer.parameters():
            parameter.data = draw(*parameter.shape) / math.sqrt(64)
        return lambda x: layer(x)[0]
    return make


case("lstm", "9x32to64", _of(9, 32))(_recurrent(torch.nn.LSTM))
case("gru", "9x32to64", _of(9, 32))(_recurrent(torch.nn.GRU))
