"""The allocator of TensorFlow that asks the device for each tensor; TF_GPU_ALLOCATOR names it."""

import glob
import importlib.util
import os
import re

_PACKAGE = re.compile(r"(?:nvidia_)?tensorflow(?:_gpu|_cpu)?-(\d+)\.(\d+)")
_WITHOUT_STATISTICS = (2, 5), (2, 14)  # from, to: with "cuda_malloc" they end with "No allocator statistics"


def own_allocations(version):
    """Return the allocator's name. version: (major, minor), None if it is unknown."""
    first, last = _WITHOUT_STATISTICS
    return "cuda_malloc_async" if version and first <= version <= last else "cuda_malloc"


def installed_version():
    """Return (major, minor) of the installed TensorFlow without importing it; None if it is unknown."""
    spec = importlib.util.find_spec("tensorflow")
    folder = os.path.dirname(os.path.dirname(spec.origin)) if spec and spec.origin else ""
    for path in sorted(glob.glob(os.path.join(folder, "*tensorflow*.dist-info"))):
        match = _PACKAGE.match(os.path.basename(path))
        if match:
            return int(match.group(1)), int(match.group(2))
    return None
