"""The GPUs that a build can run on, by the architectures of its embedded code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# {compute capability: common GPUs}, from NVIDIA's list "CUDA GPU Compute Capability".
GPUS: dict[tuple[int, int], str] = {
    (3, 5): "Tesla K40, GTX Titan",
    (3, 7): "Tesla K80",
    (5, 0): "GTX 750 Ti, Quadro M2000M",
    (5, 2): "Tesla M40, GTX 980",
    (6, 0): "Tesla P100",
    (6, 1): "Tesla P4, P40, GTX 1080",
    (7, 0): "V100, Titan V",
    (7, 5): "T4, RTX 2080",
    (8, 0): "A100, A30",
    (8, 6): "A10, A40, RTX 3090",
    (8, 9): "L4, L40S, RTX 4090",
    (9, 0): "H100, H200, GH200",
    (10, 0): "B200, GB200",
    (12, 0): "RTX 5090, RTX PRO 6000 Blackwell",
}

RunMode = Literal["native", "jit", "no"]
_ARCH = re.compile(r"(?:sm|compute)_(\d+)(\d)([af]?)$")


@dataclass(frozen=True)
class Capability:
    """How the GPUs of one compute capability run a build."""

    compute: tuple[int, int]
    gpus: str
    run_mode: RunMode
    arch: str  # the embedded architecture that they run, "" if none

    def as_json(self) -> dict[str, str]:
        return {"compute_capability": f"{self.compute[0]}.{self.compute[1]}", "gpus": self.gpus, "runs": self.run_mode,
                "by": self.arch}  # fmt: skip


def capabilities(sass: Iterable[str], ptx: Iterable[str]) -> list[Capability]:
    """Return for each common GPU whether it runs the build natively, by JIT compilation of PTX, or not."""
    sass_archs, ptx_archs = list(sass), list(ptx)
    return [_capability(compute, gpus, sass_archs, ptx_archs) for compute, gpus in GPUS.items()]


def _capability(compute: tuple[int, int], gpus: str, sass: list[str], ptx: list[str]) -> Capability:
    if native := _best(arch for arch in sass if _runs(arch, compute)):
        return Capability(compute, gpus, "native", native)
    if jit := _best(arch for arch in ptx if _compiles(arch, compute)):
        return Capability(compute, gpus, "jit", jit)
    return Capability(compute, gpus, "no", "")


def _runs(arch: str, compute: tuple[int, int]) -> bool:
    """Return whether machine code runs: on its major version from its minor version on; sm_90a on 9.0 alone."""
    major, minor, suffix = _parts(arch)
    if suffix == "a":
        return (major, minor) == compute
    return major == compute[0] and minor <= compute[1]


def _compiles(arch: str, compute: tuple[int, int]) -> bool:
    """Return whether PTX compiles: on all later versions; compute_100f as its machine code runs, and so compute_90a."""
    major, minor, suffix = _parts(arch)
    return _runs(arch, compute) if suffix else (major, minor) <= compute


def _best(archs: Iterable[str]) -> str:
    return max(archs, key=_parts, default="")


def _parts(arch: str) -> tuple[int, int, str]:
    match = _ARCH.match(arch)
    if match is None:
        raise ValueError(f"{arch!r} is not a GPU architecture")
    return int(match[1]), int(match[2]), match[3]


def sort_archs(archs: Iterable[str]) -> list[str]:
    """Sort by number: sm_35 before sm_100."""
    return sorted(set(archs), key=_parts)


def native_capabilities(capabilities: Iterable[Capability]) -> str:
    """Return the compute capabilities that run natively, as `3.5 3.7 5.0`."""
    return " ".join("{}.{}".format(*c.compute) for c in capabilities if c.run_mode == "native")
