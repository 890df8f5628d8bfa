"""The virtual GPU on this host: its libraries, built once from the folder vgpu/, and who gets to see them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from pathlib import Path

from tfdet.base.errors import RunFailed, UsageError
from tfdet.base.paths import Project, cache_dir
from tfdet_common import virtual_gpu

_NO_COMPILER = 3  # what vgpu/build.py ends with then


def library(project: Project, *, portable: bool = False) -> Path:
    """The folder that holds libcuda.so.1 and its kin.

    portable: for another machine's C library, or a container's.  RunFailed, with advice, where nothing compiles it.
    """
    if project.home and (made := _installed()):
        return made
    command = [sys.executable, str(project.vgpu / "build.py"), str(cache_dir() / "vgpu")]
    done = subprocess.run([*command, *["--portable"] * portable], stdout=subprocess.PIPE, text=True)
    if done.returncode == _NO_COMPILER:
        advice = "pip install tfdet-vgpu" if project.home else "pip install ziglang"
        raise RunFailed("the virtual GPU cannot be built here", f"{advice}, or install g++ (see above).")
    if done.returncode:
        raise RunFailed("the virtual GPU was not built", "The compiler's messages above say why.")
    return Path(done.stdout.strip())


def _installed() -> Path | None:
    """What the distribution tfdet-vgpu brings, if it is there and of this version."""
    try:
        if metadata.version("tfdet-vgpu") != metadata.version("tfdet"):
            return None
    except metadata.PackageNotFoundError:
        return None
    made: Path = import_module("tfdet_vgpu").folder()
    return made


def environ(
    library: Path, schedule: str, before: Mapping[str, str] = os.environ, *, stand_ins: bool = False
) -> dict[str, str]:
    """What a program of this user's must be started with to see the virtual GPU, and no other.

    stand_ins: for closed libraries; their results are no evidence, and the device names each that it used.
    UsageError where the device has no such schedule.
    """
    if ctypes.CDLL(str(library / "libvgpu.so")).vgpu_set_schedule(schedule.encode()):
        advice = "Schedules: serial, reverse, random:SEED, adversary:SEED, or what vgpu/minimise.py has printed."
        raise UsageError(f"no schedule is called {schedule!r}", advice)
    found = {**virtual_gpu.environ(str(library), before), "VGPU_SCHEDULE": schedule}
    return {**found, virtual_gpu.STAND_INS: "all"} if stand_ins else found
