"""Turn a computation into run() -> list of NumPy arrays."""

import random

import numpy as np
import torch

from tfdet_probe.core.snapshot import Snapshot
from tfdet_probe.frameworks.base import Runner

from . import placement, solutions, values

_SEED = 20191024  # of samples


def prepare(computation, mode, device, settings):
    """A Runner for this computation in this mode.  device: such as GPU:0.  settings: see core.settings.Settings."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    return {"eager": _runner}[mode](computation, device, settings)


def _runner(computation, device, settings):
    runner = _Samples if computation.kind == "samples" else _Eager
    return runner(computation, torch.device({"CPU": "cpu", "GPU": "cuda"}[device.split(":")[0]]), settings)


class _Eager(Runner):
    def __init__(self, computation, device, settings):
        self._computation, self._device, self._settings = computation, device, settings
        self._inputs = [torch.from_numpy(value).to(device) for value in computation.inputs]
        for number in computation.wrt:
            self._inputs[number].requires_grad_()

    def run(self):
        self._settings.before_repeat()
        return values.arrays(self._outputs())

    def _outputs(self):
        outputs = values.leaves(self._computation.function(*self._inputs))
        if self._computation.kind != "gradient":
            return outputs
        upstream = [self._upstream(tensor) for tensor in outputs]
        return torch.autograd.grad(outputs, [self._inputs[number] for number in self._computation.wrt], upstream)

    def _upstream(self, tensor):
        given = self._computation.upstream(tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""))
        return torch.from_numpy(given).to(self._device)

    def placed(self):
        return placement.of(self._outputs)


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
