"""The GPUs of this host, as NVIDIA's management library (NVML) reports them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU.  name: of the board.  capability: its compute capability.  mebibytes: of its memory."""

    name: str
    capability: tuple[int, int]
    mebibytes: int


@dataclass(frozen=True)
class DriverInfo:
    """The driver's version and the GPUs, as NVML reports them."""

    driver: str
    gpus: tuple[Gpu, ...]


def read_driver_info() -> DriverInfo | None:
    """Query NVML; None without a driver, or if the driver does not support a query."""
    import pynvml  # takes 60 ms, and few commands need it

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
        gpus = [
            Gpu(
                pynvml.nvmlDeviceGetName(handle),
                pynvml.nvmlDeviceGetCudaComputeCapability(handle),
                pynvml.nvmlDeviceGetMemoryInfo(handle).total >> 20,
            )
            for handle in handles
        ]
        return DriverInfo(pynvml.nvmlSystemGetDriverVersion(), tuple(gpus))
    except pynvml.NVMLError:  # an old driver
        return None
    finally:
        pynvml.nvmlShutdown()
