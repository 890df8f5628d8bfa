"""The calls and seeds that are solutions in PyTorch."""


def apply(call):
    """Make a solution's call, before the first op."""
    _CALLS[call]()


def seed(number):
    """Seed Python, NumPy and PyTorch."""
    import random

    import numpy as np
    import torch
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def _deterministic():
    import torch
    torch.use_deterministic_algorithms(True)


def _warn_only():
    import torch
    torch.use_deterministic_algorithms(True, warn_only=True)


def _cudnn():
    """Not through torch.backends.cudnn: once torch.testing is imported, setting its flags raises."""
    import torch
    torch._C._set_cudnn_deterministic(True)
    torch._C._set_cudnn_benchmark(False)


_CALLS = {"use_deterministic_algorithms": _deterministic, "use_deterministic_algorithms_warn_only": _warn_only,
          "cudnn_deterministic": _cudnn}
