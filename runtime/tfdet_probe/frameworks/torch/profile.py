"""Which CUDA kernels a case launches, where PyTorch's profiler tells: it needs CUPTI."""

import torch

from tfdet_probe.frameworks.base import launched


def kernels(run):
    """The names of the kernels that run() launches, sorted; None where nothing can tell.  Never an error."""
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            run()
            torch.cuda.synchronize()
        return launched(event.name for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    except Exception:  # a profiler that does not work is no reason to measure nothing
        return None
