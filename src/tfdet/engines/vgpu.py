"""The virtual GPU on this host: its libraries, built once from the folder vgpu/, and who gets to see them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tfdet.base.errors import RunFailed, UsageError
from tfdet.base.paths import Project, cache_dir
from tfdet_common import virtual_gpu

_NO_COMPILER = 3  # what vgpu/build.py ends with then
_SCHEDULE = re.compile(r"serial|reverse|(random|adversary):\d{1,18}")


def library(project: Project, *, portable: bool = False) -> Path:
    """The folder that holds libcuda.so.1 and its kin.

    portable: for another machine's C library, or a container's.  RunFailed, with advice, where nothing compiles it.
    """
    command = [sys.executable, str(project.vgpu / "build.py"), str(cache_dir() / "vgpu")]
    done = subprocess.run([*command, *["--portable"] * portable], stdout=subprocess.PIPE, text=True)
    if done.returncode == _NO_COMPILER:
        raise RunFailed("the virtual GPU cannot be built here", "pip install ziglang, or install g++ (see above).")
    if done.returncode:
        raise RunFailed("the virtual GPU was not built", "The compiler's messages above say why.")
    return Path(done.stdout.strip())


def checked(schedule: str) -> str:
    """UsageError where the device would not know it."""
    if not _SCHEDULE.fullmatch(schedule):
        advice = "Schedules: serial, reverse, random:SEED, adversary:SEED."
        raise UsageError(f"no schedule is called {schedule!r}", advice)
    return schedule


def environ(
    library: Path, schedule: str, before: Mapping[str, str] = os.environ, *, stand_ins: bool = False
) -> dict[str, str]:
    """What a program of this user's must be started with to see the virtual GPU, and no other.

    stand_ins: for closed libraries; their results are no evidence, and the device names each that it used.
    """
    found = {**virtual_gpu.environ(str(library), before), "VGPU_SCHEDULE": schedule}
    return {**found, virtual_gpu.STAND_INS: "all"} if stand_ins else found
