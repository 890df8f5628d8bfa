"""The backend for PyTorch 2.0 and later. This module does not import PyTorch: methods that need it do."""

import importlib

from ...backends import Backend
from . import advice, op_traits


class TorchBackend(Backend):
    """PyTorch; backends.Backend says what each method does.

    The fixes that can be applied to a program are UDA, torch.use_deterministic_algorithms(), and SEED, a seed.
    """

    name, label = "torch", "PyTorch"
    packages = ("torch", "torchvision")
    # Functions that return uninitialized memory, and those that return zeros instead.
    uninitialized_allocators = {"new_empty": "new_zeros", "Tensor": "zeros", "FloatTensor": "zeros"}
    seed_lines = ("import torch", "torch.manual_seed({})")
    switch_lines = ("import torch", "torch.use_deterministic_algorithms(True)")
    thread_lines = ("import torch", "torch.set_num_threads(1)")

    def install(self, recording):
        _module("install").install(recording)

    def traits(self, op_type):
        return op_traits.traits_of(op_type)

    def is_pure(self, op_type):
        return _module("replay").is_pure(op_type)

    def replay(self, meta, arrays, times):
        return _module("replay").run(meta, arrays, times)

    def apply_solutions(self, module, names):
        if "UDA" in names:
            module.use_deterministic_algorithms(True)
        if "SEED" in names:
            module.manual_seed(1)

    def interpose(self, kinds, module):
        _module("interposed").interpose(kinds, module)

    def advice_lines(self, fault, op_type, on_gpu):
        return advice.lines(fault, on_gpu)

    def solution_of(self, lines):
        if lines[-1:] == [advice.DETERMINISTIC_LINE]:
            return "UDA"
        return "SEED" if advice.SEED_LINE in lines else None


def _module(name):
    return importlib.import_module(__package__ + "." + name)
