"""The virtual GPU on this host: builds its libraries from vgpu/ once, and runs programs that use it.

Its schedule is the order in which it executes blocks, warps and atomics.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module, metadata
from pathlib import Path

from tfdet.base.errors import DeviceUnavailableError, RunFailedError, UsageError
from tfdet.base.paths import Project, cache_dir
from tfdet_common import virtual_gpu
from tfdet_common.parent_death import set_parent_death_signal

_NO_COMPILER = 3  # exit code of vgpu/build.py


def library_folder(project: Project, *, portable: bool = False) -> Path:
    """Return the folder that contains libcuda.so.1 and the other libraries; build them if necessary.

    portable: build for the C libraries of other machines and containers.  RunFailedError if the build fails.
    """
    if project.is_installed and (folder := _installed_libraries()):
        return folder
    command = [sys.executable, str(project.vgpu / "build.py"), str(cache_dir() / "vgpu")]
    process = subprocess.run([*command, *["--portable"] * portable], stdout=subprocess.PIPE, text=True)
    if process.returncode == _NO_COMPILER:
        advice = "pip install tfdet-vgpu" if project.is_installed else "pip install ziglang"
        raise RunFailedError("the virtual GPU cannot be built here", f"{advice}, or install g++ (see above).")
    if process.returncode:
        raise RunFailedError("the virtual GPU was not built", "See the compiler's messages above.")
    return Path(process.stdout.strip())


def preload(folder: Path) -> None:
    """Load the libraries into this process, so that frameworks imported later link with them."""
    for library in sorted(folder.glob("lib*.so.*")):
        ctypes.CDLL(str(library))


def _installed_libraries() -> Path | None:
    """Return the folder of the libraries in the distribution tfdet-vgpu; None without one of tfdet's version."""
    try:
        if metadata.version("tfdet-vgpu") != metadata.version("tfdet"):
            return None
    except metadata.PackageNotFoundError:
        return None
    folder: Path = import_module("tfdet_vgpu").folder()
    return folder


def check_schedule(schedule: str) -> None:
    """Raise UsageError if the virtual GPU has no such schedule. This builds nothing."""
    if not virtual_gpu.is_schedule(schedule):
        advice = f"Schedules: {virtual_gpu.SCHEDULES}, or what vgpu/minimize_schedule.py has printed."
        raise UsageError(f"schedule {schedule!r} not found", advice)


def environ(
    library_folder: Path, schedule: str, base_environ: Mapping[str, str] = os.environ, *, cpu_fallbacks: bool = False
) -> dict[str, str]:
    """Return the environment variables with which a program uses the virtual GPU and no other GPU.

    cpu_fallbacks: compute calls of vendor libraries on the CPU. Their results are not evidence; the device reports
    each such call.  UsageError if the device has no such schedule.
    """
    check_schedule(schedule)
    variables = {**virtual_gpu.environ(str(library_folder), base_environ), "VGPU_SCHEDULE": schedule}
    return {**variables, virtual_gpu.CPU_FALLBACKS: "all"} if cpu_fallbacks else variables


def run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program on the virtual GPU; return its exit code, 128 + N after signal N.

    DeviceUnavailableError if it succeeds without using the device.
    """
    with tempfile.TemporaryDirectory() as folder:
        used = Path(folder, "used")
        try:
            child = subprocess.Popen(
                command, env={**environ, "VGPU_USED": str(used)},
                preexec_fn=partial(set_parent_death_signal, os.getpid(), signal.SIGTERM),
            )  # fmt: skip
        except FileNotFoundError:
            advice = "Pass the program as you would to your shell."
            raise UsageError(f"{command[0]} not found on PATH", advice) from None
        code = _wait_through_ctrl_c(child)
        if not code and not used.exists():
            raise DeviceUnavailableError(
                "the program ended and never used the virtual GPU",
                "Check that its framework is a build for CUDA, and that its model is placed on the GPU.",
            )
    return 128 - code if code < 0 else code


def _wait_through_ctrl_c(child: subprocess.Popen[bytes]) -> int:
    """Wait for the program, which receives Ctrl-C itself and decides whether to end."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
