"""enable_determinism, disable and set_seeds for PyTorch; their state and PyTorch's flags belong to the process."""

import os
import random
import warnings
from collections import OrderedDict

from ..seeds import check_seed
from ..warning_categories import EnabledTooLateWarning
from .report import Report

_WORKSPACE, _VALUES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")
_saved_flags = OrderedDict()  # {name: (setter, value before)}


def enable_determinism(seed=None):
    # type: (int | None) -> Report
    """Make the installed PyTorch as deterministic as its version allows.

    Call it once, before the first op; a further call changes the seeds only.

    Args:
        seed: if given, also seed Python, NumPy and PyTorch with it.

    Returns:
        A Report, printable: what was done and what remains nondeterministic.

    Raises:
        ImportError: PyTorch is not installed.
        TypeError, ValueError: the seed is not an int from 0 to 2**32 - 1.

    Warns:
        EnabledTooLateWarning: CUDA has started already.
    """
    if seed is not None:
        seed = check_seed(seed)
    import torch
    report = Report(torch.__version__, seed)
    report.done.append(_set_workspace(torch, report))
    for name, setter, value, old_value in _flags(torch):
        _saved_flags.setdefault(name, (setter, old_value))
        setter(value)
        report.done.append("{} = {}".format(name, value) + (" (was set already)" if old_value == value else ""))
    if seed is not None:
        report.done.append("seeded {} with {}".format(", ".join(set_seeds(seed)), seed))
    return report


def disable():
    # type: () -> None
    """Restore PyTorch's flags and the environment variable; without effect if nothing is enabled.  Seeds stay."""
    while _saved_flags:
        _, (setter, old_value) = _saved_flags.popitem()
        setter(old_value)


def set_seeds(seed):
    # type: (int) -> list[str]
    """Seed Python, NumPy and PyTorch on all devices; return the names of what was seeded."""
    seed = check_seed(seed)
    import numpy
    import torch
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    return ["Python", "NumPy", "PyTorch"]


def _flags(torch):
    """Yield (name, setter, new value, current value) of each flag."""
    yield ("torch.use_deterministic_algorithms", torch.use_deterministic_algorithms, True,
           torch.are_deterministic_algorithms_enabled())
    # Not by torch.backends.cudnn: once torch.testing is imported, its flags cannot be set.
    yield ("torch.backends.cudnn.deterministic", torch._C._set_cudnn_deterministic, True,
           torch._C._get_cudnn_deterministic())
    yield "torch.backends.cudnn.benchmark", torch._C._set_cudnn_benchmark, False, torch._C._get_cudnn_benchmark()
    deterministic = getattr(torch.utils, "deterministic", None)  # since 2.2
    if deterministic is not None:
        yield ("torch.utils.deterministic." + _FILL_UNINITIALIZED,
               lambda value: setattr(deterministic, _FILL_UNINITIALIZED, value), True,
               getattr(deterministic, _FILL_UNINITIALIZED))


_FILL_UNINITIALIZED = "fill_uninitialized_memory"


def _set_workspace(torch, report):
    old_value = os.environ.get(_WORKSPACE)
    if old_value in _VALUES:
        return "environment variable {}={} was set already".format(_WORKSPACE, old_value)
    if torch.cuda.is_initialized():
        text = "CUDA has started: cuBLAS does not see {} any more. Call enable_determinism() before.".format(_WORKSPACE)
        report.warnings.append(text)
        warnings.warn(text, EnabledTooLateWarning, stacklevel=3)
    _saved_flags.setdefault(_WORKSPACE, (_put_variable, old_value))
    _put_variable(_VALUES[0])
    return "set environment variable {}={}{}".format(
        _WORKSPACE, _VALUES[0], "" if old_value is None else " (it was {!r})".format(old_value))


def _put_variable(value):
    if value is None:
        os.environ.pop(_WORKSPACE, None)
    else:
        os.environ[_WORKSPACE] = value
