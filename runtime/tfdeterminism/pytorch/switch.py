"""The switch itself: one for the process, since PyTorch's flags are the process's."""

import os
import random
import warnings
from collections import OrderedDict

from ..seeds import check_seed
from ..warned import TooLateWarning
from .report import Report

_WORKSPACE, _VALUES = "CUBLAS_WORKSPACE_CONFIG", (":4096:8", ":16:8")
_former = OrderedDict()  # {what is set: how it was before, for what sets it}


def enable_determinism(seed=None):
    # type: (int | None) -> Report
    """Do what makes this PyTorch deterministic; a printable Report of what was done and what stays.

    seed: also seed Python, NumPy and PyTorch with it.  Call it once, before the first op; calling it again changes
    nothing but the seeds.  ImportError where there is no PyTorch, ValueError or TypeError for a seed that is none.
    """
    if seed is not None:
        seed = check_seed(seed)
    import torch
    report = Report(torch.__version__, seed)
    report.done.append(_set_workspace(torch, report))
    for name, put, wanted, before in _flags(torch):
        _former.setdefault(name, (put, before))
        put(wanted)
        report.done.append("{} = {}".format(name, wanted) + (" (it was so already)" if before == wanted else ""))
    if seed is not None:
        report.done.append("seeded {} with {}".format(", ".join(set_seeds(seed)), seed))
    return report


def disable():
    # type: () -> None
    """Put back PyTorch's flags and the variable; nothing where nothing is on.  Seeds stay."""
    while _former:
        _, (put, before) = _former.popitem()
        put(before)


def set_seeds(seed):
    # type: (int) -> list[str]
    """Seed Python, NumPy and PyTorch (all its devices); the names of what was seeded."""
    seed = check_seed(seed)
    import numpy
    import torch
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    return ["Python", "NumPy", "PyTorch"]


def _flags(torch):
    """(what it is called, what sets it, the value that it gets, the value that it has)."""
    yield ("torch.use_deterministic_algorithms", torch.use_deterministic_algorithms, True,
           torch.are_deterministic_algorithms_enabled())
    # Not by torch.backends.cudnn: once torch.testing is imported, its flags refuse to be set.
    yield ("torch.backends.cudnn.deterministic", torch._C._set_cudnn_deterministic, True,
           torch._C._get_cudnn_deterministic())
    yield "torch.backends.cudnn.benchmark", torch._C._set_cudnn_benchmark, False, torch._C._get_cudnn_benchmark()
    own = getattr(torch.utils, "deterministic", None)  # since 2.2
    if own is not None:
        yield ("torch.utils.deterministic.fill_uninitialized_memory", lambda on: setattr(own, _FILL, on), True,
               getattr(own, _FILL))


_FILL = "fill_uninitialized_memory"


def _set_workspace(torch, report):
    before = os.environ.get(_WORKSPACE)
    if before in _VALUES:
        return "environment variable {}={} was set already".format(_WORKSPACE, before)
    if torch.cuda.is_initialized():
        text = "CUDA has started: cuBLAS does not see {} any more. Call enable_determinism() before.".format(_WORKSPACE)
        report.warnings.append(text)
        warnings.warn(text, TooLateWarning, stacklevel=3)
    _former.setdefault(_WORKSPACE, (_put_variable, before))
    _put_variable(_VALUES[0])
    return "set environment variable {}={}{}".format(
        _WORKSPACE, _VALUES[0], "" if before is None else " (it was {!r})".format(before))


def _put_variable(value):
    if value is None:
        os.environ.pop(_WORKSPACE, None)
    else:
        os.environ[_WORKSPACE] = value
