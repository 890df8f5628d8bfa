"""The GPUs of this host, as NVIDIA's management library tells them."""

from __future__ import annotations

from dataclasses import dataclass

from tfdet_common.nvml import query_gpus


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
    found = query_gpus()
    return None if found is None else Nvidia(found.driver, tuple(Gpu(*gpu) for gpu in found.gpus))
