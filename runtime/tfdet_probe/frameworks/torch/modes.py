"""Runners for PyTorch: eager, or compiled by torch.compile."""

import random

import numpy as np
import torch

from tfdet_probe.base.errors import UnsupportedError
from tfdet_probe.base.snapshot import Snapshot
from tfdet_probe.frameworks.base import Runner

from . import compiled, placement, pytree, solutions

_SEED = 20191024  # of samples


def prepare(computation, mode, device, settings):
    """Build the Runner of a computation, see frameworks.base.Framework.prepare; device: such as GPU:0."""
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
        return pytree.arrays(self._outputs())

    def _outputs(self):
        outputs = pytree.leaves(self._function(*self._inputs))
        if self._computation.kind != "gradient":
            return outputs
        upstream = [self._upstream(tensor) for tensor in outputs]
        return torch.autograd.grad(outputs, [self._inputs[number] for number in self._computation.wrt], upstream)

    def _upstream(self, tensor):
        given = self._computation.upstream(tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""))
        return torch.from_numpy(given).to(self._device)

    def compile(self):
        self._function = torch.compile(self._function, fullgraph=True)

    def op_placements(self):
        self._function = self._computation.function
        return placement.record_placements(self._outputs)


class _Compiled(Runner):
    """Compiles the function of another runner; a case of the kind 'samples' calls torch.compile itself."""

    def __init__(self, runner, device):
        self._compiled, self._runner = compiled.start(device), runner
        if isinstance(runner, _Eager):
            runner.compile()

    def run(self):
        return self._runner.run()

    def inputs(self):
        return self._runner.inputs()

    def op_placements(self):
        """The compiled ops; and the eager ops, because the compiler decomposes some before they are recorded."""
        if not self._compiled:
            raise UnsupportedError("torch.compile found nothing in it to compile")
        return self._compiled + (self._runner.op_placements() if isinstance(self._runner, _Eager) else [])


class _Samples(Runner):
    """Runs on the framework's own sample inputs, generated once, and again if the op has changed them."""

    def __init__(self, computation, device, settings):
        self._computation, self._device, self._settings = computation, device, settings
        self._requested = placement.name(device)
        self._generated, self._digest = None, ""

    def run(self):
        samples = self._samples()
        self._settings.before_repeat()
        return pytree.arrays(self._computation.function(samples))

    def _samples(self):
        """The samples; changes are found by digest, because not every in-place op increments the version counter."""
        if self._generated is None or _digest(self._generated) != self._digest:
            self._generated = _generate(self._computation.generate, self._device)
            self._digest = _digest(self._generated)
        return self._generated

    def inputs(self):
        self._samples()
        return self._digest

    def op_placements(self):
        """Without the CPU ops that convert a sample's numbers and shapes, if any op ran on the requested device."""
        samples = self._samples()
        placements = placement.record_placements(lambda: self._computation.function(samples))
        return [(name, device) for name, device in placements if device == self._requested] or placements


def _parts(samples):
    """The parts of each SampleInput of torch.testing."""
    return [[sample.input, sample.args, sample.kwargs] for sample in samples]


def _digest(samples):
    return Snapshot.from_arrays(pytree.arrays(_parts(samples))).digest


def _generate(generate, device):
    """Generate the same samples in each process, and restore the random generators: the op may use them."""
    python_state, numpy_state, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    gpu_states = torch.cuda.get_rng_state_all() if device.type == "cuda" else []
    solutions.seed(_SEED)
    try:
        return list(generate(str(device)))
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        if gpu_states:
            torch.cuda.set_rng_state_all(gpu_states)
