"""The GPUs of this host, as NVIDIA's management library (NVML) reports them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """name: of the board.  capability: (major, minor).  mebibytes: of its memory."""

    name: str
    capability: tuple[int, int]
    mebibytes: int


@dataclass(frozen=True)
class DriverInfo:
    """What NVML says: the driver's version, and the GPUs."""

    driver: str
    gpus: tuple[Gpu, ...]


def read_driver_info() -> DriverInfo | None:
    """What NVML says; None without a driver that answers."""
    import pynvml  # 60 ms, and few commands ask

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
    except pynvml.NVMLError:  # a driver older than the question
        return None
    finally:
        pynvml.nvmlShutdown()
