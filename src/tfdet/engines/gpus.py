"""The GPUs of this host, as NVIDIA's management library tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pynvml


@dataclass(frozen=True)
class Gpu:
    name: str
    capability: tuple[int, int]
    mebibytes: int


@dataclass(frozen=True)
class Nvidia:
    """What NVML says: the driver's version, and the GPUs."""

    driver: str
    gpus: tuple[Gpu, ...]


def nvml() -> Nvidia | None:
    """What NVML says; None without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return Nvidia(_text(pynvml.nvmlSystemGetDriverVersion()), tuple(map(_gpu, handles)))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _gpu(handle: Any) -> Gpu:
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle).total
    return Gpu(_text(pynvml.nvmlDeviceGetName(handle)), (int(major), int(minor)), int(memory) >> 20)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
