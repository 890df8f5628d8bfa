"""The CUDA kernels that a case launches, by PyTorch's profiler, which needs CUPTI."""

import torch

from tfdet_probe.frameworks.base import normalize_kernel_names


def kernels(run):
    """The sorted names of the GPU kernels that run() launches; None without a working profiler."""
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            run()
            torch.cuda.synchronize()
        gpu = torch.autograd.DeviceType.CUDA
        return normalize_kernel_names(event.name for event in profile.events() if event.device_type == gpu)
    except Exception:  # without the profiler the case still counts
        return None
