"""The virtual GPU on this host: its libraries, built once from vgpu/, and the environment of programs that use it."""

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

_NO_COMPILER = 3  # what vgpu/build.py ends with then


def library_folder(project: Project, *, portable: bool = False) -> Path:
    """The folder that holds libcuda.so.1 and its kin.

    portable: for another machine's C library, or a container's.  RunFailedError if it cannot be compiled.
    """
    if project.user_data and (made := _installed_libraries()):
        return made
    command = [sys.executable, str(project.vgpu / "build.py"), str(cache_dir() / "vgpu")]
    done = subprocess.run([*command, *["--portable"] * portable], stdout=subprocess.PIPE, text=True)
    if done.returncode == _NO_COMPILER:
        advice = "pip install tfdet-vgpu" if project.user_data else "pip install ziglang"
        raise RunFailedError("the virtual GPU cannot be built here", f"{advice}, or install g++ (see above).")
    if done.returncode:
        raise RunFailedError("the virtual GPU was not built", "See the compiler's messages above.")
    return Path(done.stdout.strip())


def preload(folder: Path) -> None:
    """Load its libraries into this process: what is imported later takes them for those that it links with."""
    for library in sorted(folder.glob("lib*.so.*")):
        ctypes.CDLL(str(library))


def _installed_libraries() -> Path | None:
    """What the distribution tfdet-vgpu brings, if it is there and of this version."""
    try:
        if metadata.version("tfdet-vgpu") != metadata.version("tfdet"):
            return None
    except metadata.PackageNotFoundError:
        return None
    made: Path = import_module("tfdet_vgpu").folder()
    return made


def check_schedule(schedule: str) -> None:
    """UsageError where the device has no such schedule.  Nothing is built for this."""
    if not virtual_gpu.is_schedule(schedule):
        advice = f"Schedules: {virtual_gpu.SCHEDULES}, or what vgpu/minimize_schedule.py has printed."
        raise UsageError(f"schedule {schedule!r} not found", advice)


def environ(
    library: Path, schedule: str, base_environ: Mapping[str, str] = os.environ, *, cpu_fallbacks: bool = False
) -> dict[str, str]:
    """What a program of this user's must be started with to see the virtual GPU, and no other.

    cpu_fallbacks: compute calls of vendor libraries on the CPU. Their results are not evidence; the device names each.
    UsageError where the device has no such schedule.
    """
    check_schedule(schedule)
    found = {**virtual_gpu.environ(str(library), base_environ), "VGPU_SCHEDULE": schedule}
    return {**found, virtual_gpu.CPU_FALLBACKS: "all"} if cpu_fallbacks else found


def run(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program there; its exit code, as a shell has it.

    DeviceUnavailableError where it ends well and never asked for the device.
    """
    with tempfile.TemporaryDirectory() as folder:
        used = Path(folder, "used")
        try:
            child = subprocess.Popen(
                words, env={**environ, "VGPU_USED": str(used)},
                preexec_fn=partial(set_parent_death_signal, os.getpid(), signal.SIGTERM),
            )  # fmt: skip
        except FileNotFoundError:
            raise UsageError(f"{words[0]} not found on PATH", "Pass the program as you would to your shell.") from None
        code = _wait_through_ctrl_c(child)
        if not code and not used.exists():
            raise DeviceUnavailableError(
                "the program ended and never used the virtual GPU",
                "Check that its framework is a build for CUDA, and that its model is placed on the GPU.",
            )
    return 128 - code if code < 0 else code


def _wait_through_ctrl_c(child: subprocess.Popen[bytes]) -> int:
    """Ctrl-C is for the program: it ends as it will."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
