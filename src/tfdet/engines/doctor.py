"""Checks of what this host can run, for `tfdet doctor`; they are independent, and none raises an error."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tfdet.base.errors import TfdetError, UsageError
from tfdet.base.extras import require
from tfdet.base.folders import is_there
from tfdet.base.paths import Project, cache_dir
from tfdet.engines.build_tools import missing_tools
from tfdet.engines.gpus import DriverInfo, read_driver_info
from tfdet.engines.interpreters import find_python
from tfdet.matrix.devices import GPU
from tfdet.matrix.load import Matrix, natural_sort_key
from tfdet.matrix.models import UNKNOWN, CompiledPackages, Environment, PipRequirements
from tfdet.store import audits
from tfdet_common.versions import numbers

State = Literal["ok", "missing", "warn"]
GIB = 1 << 30
MIN_FREE_BYTES = 10 * GIB  # a GPU image, or a GPU environment, with its downloads


@dataclass(frozen=True)
class Check:
    """The result of a check.  name: of the thing checked.  detail: its version or problem.  advice: what to do."""

    name: str
    state: State
    detail: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def run_checks(project: Project, matrix: Matrix, key: str | None, device: str = GPU) -> list[Check]:
    """Run all checks or, with an environment's key, those of what that environment needs on that device."""
    info = docker_info()
    nvidia = read_driver_info()
    minors = {environment.pip.python for environment in matrix.environments.values() if environment.pip}
    if key is None:
        gpu, docker = [check_gpus(nvidia)], [check_docker(info), check_container_toolkit(info)]
        return [*docker, *gpu, *check_disks(info), check_uv(), *map(check_python, sorted(minors, key=natural_sort_key))]
    environment = fill_architectures(project, key, matrix.environment(key))
    kind = matrix.devices.find_by_cli_name(device)
    docker = [check_docker(info)] + [check_container_toolkit(info)] * kind.needs_driver
    venv = _check_venv(environment.pip) if environment.pip else []
    docker, venv = relax_engine_checks(docker, venv)
    gpu = [check_gpus(nvidia), check_driver(environment, nvidia), check_architecture(environment, nvidia)]
    gpu = gpu if kind.needs_driver else [check_compiler(project)] if kind.virtual else []
    return [*docker, *gpu, *check_disks(info), *venv]


def _check_venv(pip: PipRequirements) -> list[Check]:
    compiled = [check_build_tools(pip.compiled)] if pip.compiled else []
    return [check_uv(), check_python(pip.python), *compiled]


def check_build_tools(compiled: CompiledPackages) -> Check:
    """Check the tools that compile the packages without wheels."""
    name = f"build of {', '.join(compiled.packages)}"
    missing = missing_tools(compiled)
    if missing:
        return Check(name, "missing", f"no {', '.join(missing)}", "Install a C++ compiler and make.")
    for command, reason in compiled.conflicts.items():
        if path := shutil.which(command):
            return Check(name, "warn", path, reason)
    settings = " ".join(f"{key}={value}" for key, value in compiled.variables.items())
    return Check(name, "ok", f"by {', '.join(compiled.tools)} with {settings}")


def relax_engine_checks(docker: list[Check], venv: list[Check]) -> tuple[list[Check], list[Check]]:
    """Turn "missing" into "warn" for one engine if the other can run the environment: only one is needed."""

    def is_usable(checks: list[Check]) -> bool:
        return bool(checks) and all(check.state != "missing" for check in checks)

    def relax(checks: list[Check]) -> list[Check]:
        return [replace(check, state="warn") if check.state == "missing" else check for check in checks]

    return relax(docker) if is_usable(venv) else docker, relax(venv) if is_usable(docker) else venv


def docker_info() -> dict[str, Any] | TfdetError:
    """Return the Docker daemon's information about itself, or the error if it does not respond."""
    try:
        require("docker")
    except UsageError as error:
        return error
    from docker.errors import DockerException

    from tfdet.engines import images

    try:
        return dict(images.connect().info())
    except TfdetError as error:
        return error
    except DockerException as error:
        return TfdetError(str(error), "See `docker info`.")


def check_docker(info: dict[str, Any] | TfdetError) -> Check:
    if isinstance(info, TfdetError):
        return Check("Docker", "missing", info.cause, info.advice)
    return Check("Docker", "ok", f"version {info.get('ServerVersion')}, {info.get('Driver')}")


def check_container_toolkit(info: dict[str, Any] | TfdetError) -> Check:
    """Check whether Docker can give GPUs to containers: by the nvidia runtime, its hook on PATH, or CDI devices."""
    name = "NVIDIA runtime in Docker"
    if isinstance(info, TfdetError):
        return Check(name, "missing", "no Docker", "Not needed for `--engine venv` or `--device cpu`.")
    if "nvidia" in (info.get("Runtimes") or {}):
        return Check(name, "ok", "runtime nvidia")
    devices = [str(device.get("ID")) for device in info.get("DiscoveredDevices") or []]
    if any("nvidia.com/gpu" in device for device in devices):
        return Check(name, "ok", "CDI devices")
    if shutil.which("nvidia-container-runtime-hook"):
        return Check(name, "ok", "nvidia-container-runtime-hook")
    return Check(
        name,
        "missing",
        "containers get no GPU",
        "Install the NVIDIA Container Toolkit: nvidia-ctk runtime configure; restart Docker.",
    )


def check_gpus(nvidia: DriverInfo | None) -> Check:
    if nvidia is None:
        return Check("GPU", "missing", "NVML finds no NVIDIA driver", "Runs with `--device cpu` work without one.")
    if not nvidia.gpus:
        return Check("GPU", "missing", f"driver {nvidia.driver}, no GPU", "See nvidia-smi.")
    detail = ", ".join(f"{g.name} ({g.capability[0]}.{g.capability[1]}, {g.mebibytes >> 10} GiB)" for g in nvidia.gpus)
    return Check("GPU", "ok", detail)


def check_driver(environment: Environment, nvidia: DriverInfo | None) -> Check:
    """Compare the driver with the oldest one that the environment's CUDA supports."""
    name = "driver"
    minimum = re.search(r"\d+(\.\d+)*", environment.min_driver)
    if nvidia is None:
        return Check(name, "missing", "none", _if_known("The environment needs {} or newer.", environment.min_driver))
    if environment.min_driver == UNKNOWN or not minimum:
        return Check(name, "warn", f"{nvidia.driver}; what the environment needs is unknown")
    if numbers(nvidia.driver) < numbers(minimum.group()):
        return Check(
            name, "missing", f"{nvidia.driver} is too old", f"Install driver {environment.min_driver} or newer."
        )
    return Check(name, "ok", f"{nvidia.driver} (the environment needs {environment.min_driver})")


def check_architecture(environment: Environment, nvidia: DriverInfo | None) -> Check:
    """Compare the GPUs with the code in the binary: SASS runs within its major version, PTX on any newer GPU."""
    name = "GPU code"
    if nvidia is None or not nvidia.gpus:
        return Check(name, "missing", "no GPU", _if_known("The environment has code for: {}.", environment.cuda_arch))
    sass, ptx = architectures(environment.cuda_arch)
    if not sass and not ptx:
        return Check(name, "warn", "which GPUs the binary has code for is unknown")
    other_gpus = [gpu for gpu in nvidia.gpus if not any(_runs(sm, gpu.capability) for sm in sass)]
    if not other_gpus:
        return Check(name, "ok", f"compiled for these GPUs ({environment.cuda_arch})")
    names = ", ".join(sorted({gpu.name for gpu in other_gpus}))
    if all(any(compute <= gpu.capability for compute in ptx) for gpu in other_gpus):
        return Check(
            name,
            "warn",
            f"no code for {names}: PTX is compiled at the first start",
            "The first run may take half an hour; what it shows is of the driver's compiler, too.",
        )
    return Check(
        name, "missing", f"no code that runs on {names} ({environment.cuda_arch})", "Take a newer environment."
    )


def _if_known(text: str, value: str) -> str:
    return "" if value == UNKNOWN else text.format(value)


def fill_architectures(project: Project, key: str, environment: Environment) -> Environment:
    """Return the environment with the GPU architectures that its audit found in binaries, if no document has them."""
    path = audits.path_of(project, key)
    if environment.cuda_arch != UNKNOWN or not is_there(path):
        return environment
    audited = audits.load(path).architectures
    names = [*audited["sass"], *(f"{arch} (PTX)" for arch in audited["ptx"])]
    return environment.model_copy(update={"cuda_arch": ", ".join(names)}) if names else environment


def architectures(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Parse `sm_60, sm_70, compute_80 (PTX)` to the compute capabilities of its (SASS, PTX)."""
    named = [
        (kind, (int(number[:-1]), int(number[-1]))) for kind, number in re.findall(r"(sm|compute)_(\d{2,3})", text)
    ]
    return [c for kind, c in named if kind == "sm"], [c for kind, c in named if kind == "compute"]


def _runs(sass: tuple[int, int], capability: tuple[int, int]) -> bool:
    return sass[0] == capability[0] and sass[1] <= capability[1]


def check_compiler(project: Project) -> Check:
    """Check the compiler that builds the virtual GPU."""
    name = "C++ compiler for the virtual GPU"
    process = _run([sys.executable, str(project.vgpu / "build.py"), "--compiler"])
    if process.returncode:
        return Check(name, "missing", "none", "pip install ziglang, or install g++.")
    return Check(name, "ok", process.stdout.strip())


def check_disks(info: dict[str, Any] | TfdetError) -> Iterator[Check]:
    folders = {"disk for environments": cache_dir()}
    if not isinstance(info, TfdetError) and info.get("DockerRootDir"):
        folders["disk for images"] = Path(str(info["DockerRootDir"]))
    for name, folder in folders.items():
        yield check_disk(name, folder)


def check_disk(name: str, folder: Path) -> Check:
    """Check the free space for a folder, which need not exist yet."""
    existing = next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))
    try:
        free = shutil.disk_usage(existing).free
    except OSError as error:
        return Check(name, "warn", f"{existing}: {error.strerror}")
    detail = f"{free / GIB:.0f} GiB free in {folder}"
    if free < MIN_FREE_BYTES:
        return Check(
            name, "warn", detail, f"One GPU environment takes up to {MIN_FREE_BYTES // GIB} GiB: free some space."
        )
    return Check(name, "ok", detail)


def check_uv() -> Check:
    command = _uv()
    if command is None:
        return Check("uv", "missing", "not found", "Install it: pip install uv")
    return Check("uv", "ok", _output([command, "--version"]))


def check_python(minor: str) -> Check:
    """Check for a CPython of this minor version, for the venv engine."""
    name = f"CPython {minor}"
    path = find_python(minor)
    if path:
        return Check(name, "ok", str(path))
    if numbers(minor) < (3, 8):
        advice = f"pyenv install {minor} (keep its bin on PATH), or use `--engine docker`."
        return Check(name, "missing", "not on this machine, and uv brings none", advice)
    return Check(name, "ok", "not here; uv downloads it when it is needed")


def _uv() -> str | None:
    from uv import find_uv_bin

    try:
        return find_uv_bin()
    except FileNotFoundError:
        return shutil.which("uv")


def _output(command: list[str]) -> str:
    return _run(command).stdout.strip()


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))
