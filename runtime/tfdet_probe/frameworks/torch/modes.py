"""Turn a computation into run() -> list of NumPy arrays."""

import random

import numpy as np
import torch

from tfdet_probe.core.errors import Unsupported
from tfdet_probe.core.snapshot import Snapshot
from tfdet_probe.frameworks.base import Runner

from . import compiled, placement, solutions, values

_SEED = 20191024  # of samples


def prepare(computation, mode, device, settings):
    """A Runner for this computation in this mode.  device: such as GPU:0.  settings: see core.settings.Settings."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = torch.device({"CPU": "cpu", "GPU": "cuda"}[device.split(":")[0]])
    runner = (_Samples if computation.kind == "samples" else _Eager)(computation, device, settings)
    return {"eager": lambda runner, device: runner, "compiled": _Compiled}[mode](runner, device)


class _Eager(Runner):
    def __init__(self, computation, device, settings):
        self._computation, self._device, self._settings = computation, device, settings
        self._function = computation.function
        self._inputs = [torch.from_numpy(value).to(device) for value in computation.inputs]
        for number in computation.wrt:
            self._inputs[number].requires_grad_()

    def run(self):
        self._settings.before_repeat()
        return values.arrays(self._outputs())

    def _outputs(self):
        outputs = values.leaves(self._function(*self._inputs))
        if self._computation.kind != "gradient":
            return outputs
        upstream = [self._upstream(tensor) for tensor in outputs]
        return torch.autograd.grad(outputs, [self._inputs[number] for number in self._computation.wrt], upstream)

    def _upstream(self, tensor):
        given = self._computation.upstream(tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""))
        return torch.from_numpy(given).to(self._device)

    def compile(self):
        self._function = torch.compile(self._function, fullgraph=True)

    def placed(self):
        self._function = self._computation.function
        return placement.of(self._outputs)


class _Compiled(Runner):
    """Another runner whose function torch.compile takes, whole; a case of samples says itself what of it."""

    def __init__(self, runner, device):
        self._compiled, self._runner = compiled.start(device), runner
        if isinstance(runner, _Eager):
            runner.compile()

    def run(self):
        return self._runner.run()

    def inputs(self):
        return self._runner.inputs()

    def placed(self):
        """What was compiled; and of ops that the compiler takes apart first, what runs where nothing is compiled."""
        if not self._compiled:
            raise Unsupported("torch.compile found nothing in it to compile")
        return self._compiled + (self._runner.placed() if isinstance(self._runner, _Eager) else [])


class _Samples(Runner):
    """The framework's own sample inputs: made once, and again where the op changed them."""

    def __init__(self, computation, device, settings):
        self._computation, self._device, self._settings = computation, device, settings
        self._asked = placement.name(device)
        self._made, self._digest = None, ""

    def run(self):
        samples = self._samples()
        self._settings.before_repeat()
        return values.arrays(self._computation.function(samples))

    def _samples(self):
        """By their bytes: not every op that writes into a tensor tells its version counter (native_batch_norm)."""
        if self._made is None or _digest(self._made) != self._digest:
            self._made = _generated(self._computation.generate, self._device)
            self._digest = _digest(self._made)
        return self._made

    def inputs(self):
        self._samples()
        return self._digest

    def placed(self):
        """What samples hold beside tensors (a number, a shape) becomes a tensor of the processor on its way."""
        samples = self._samples()
        seen = placement.of(lambda: self._computation.function(samples))
        return [(name, where) for name, where in seen if where == self._asked] or seen


def _parts(samples):
    """What a SampleInput of torch.testing holds."""
    return [[sample.input, sample.args, sample.kwargs] for sample in samples]


def _digest(samples):
    return Snapshot.of(values.arrays(_parts(samples))).digest


def _generated(generate, device):
    """The same samples in each process; the generators stay as they were, for the op may draw from them."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state_all() if device.type == "cuda" else []
    solutions.seed(_SEED)
    try:
        return list(generate(str(device)))
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])
        if on_gpu:
            torch.cuda.set_rng_state_all(on_gpu)
