"""The venv engine, which runs the suite in a virtual environment built from the lock file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout
from uv import find_uv_bin

from tfdet.base.errors import DeviceUnavailableError, RunFailedError, TfdetError, UsageError
from tfdet.base.folders import is_there
from tfdet.base.paths import Project, cache_dir
from tfdet.engines import vgpu
from tfdet.engines.base import Request, forwarded_environment, sigterm_as_keyboard_interrupt
from tfdet.engines.build_tools import missing_tools
from tfdet.engines.gpus import read_driver_info
from tfdet.engines.interpreters import find_python
from tfdet.engines.locks import check_lock, framework_of, read_lock, restrict_to, without, without_nvidia
from tfdet.matrix.field_types import Device
from tfdet.matrix.models import CompiledPackages, Environment, PipRequirements
from tfdet_common import virtual_gpu
from tfdet_common.machine import machine_name
from tfdet_common.parent_death import set_parent_death_signal
from tfdet_common.variables import FRAMEWORKS

# The user's variables that the probe inherits; those that solutions set must not come from the user.
# FRAMEWORKS: folders with more adapters of frameworks.
_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
              FRAMEWORKS)  # fmt: skip


class VenvEngine:
    """The engine that runs the suite in a virtual environment on this host."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, request: Request) -> int:
        """Build the environment if it does not exist, and run the suite; return the probe's exit code."""
        _pip_requirements(request.key, request.environment)
        kind = request.kind
        if kind.needs_driver:
            require_gpu(request.environment)
        # claim_device: "cpu" or "gpu"; the virtual GPU runs the GPU build.
        python = self.interpreter(
            request.key, request.environment, kind.claim_device, without_vendor_libraries=kind.virtual
        )
        library = vgpu.library_folder(self._project) if kind.virtual else None
        suite = self._project.suite(request.environment.framework)
        command = [str(python), "-m", "tfdet_probe", "--plan", str(request.plan), "--suite", str(suite)]
        command += ["--out", str(request.journal), *request.selection.probe_arguments()]
        command += ["--exit-with", str(os.getpid())]
        # The probe's table goes to standard error, as its progress does: standard output is for that of the host.
        return wait(subprocess.Popen(command, env=self._environ(library), stdin=subprocess.PIPE, stdout=sys.stderr))

    def interpreter(
        self, key: str, environment: Environment, build: Device, *, without_vendor_libraries: bool = False
    ) -> Path:
        """Return the path of the environment's Python; build the environment from its lock file if necessary.

        build: "gpu" or "cpu" build of the framework.  without_vendor_libraries: leave out NVIDIA's libraries, which the
        virtual GPU replaces.
        """
        pip = _pip_requirements(key, environment)
        lock = self._project.lock(key, build)
        if not is_there(lock):
            raise TfdetError(f"{lock} not found", f"Create it: scripts/update-locks {key}")
        framework = framework_of(self._project, environment)
        check_lock(lock, framework=framework)
        requirements = read_lock(self._project, key, build)
        if without_vendor_libraries:
            requirements = without_nvidia(requirements, framework.virtual_gpu_packages)
        compiled = pip.compiled.model_dump_json(exclude={"conflicts"}) if pip.compiled else ""
        digest = hashlib.sha256((requirements + compiled).encode()).hexdigest()[:10]
        folder = cache_dir() / "venvs" / f"{key}-{build}-{digest}"
        python = folder / "bin" / "python"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder):
            if not is_there(folder / "complete"):
                _build(folder, python, pip, lock, requirements)
        return python

    def _environ(self, library: Path | None) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {
            **inherited,
            **({virtual_gpu.FOLDER: str(library)} if library else {}),
            **forwarded_environment(),
            "PYTHONPATH": str(self._project.runtime),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "TFDET_ENGINE": "venv",
            "TFDET_MACHINE": machine_name(),
        }


def _pip_requirements(key: str, environment: Environment) -> PipRequirements:
    if environment.pip is None:
        raise UsageError(f"{key} is an image only: pip cannot install it", f"Use `tfdet run {key} --engine docker`.")
    return environment.pip


def require_gpu(environment: Environment) -> None:
    """Raise DeviceUnavailableError if a GPU build cannot start here: before gigabytes are downloaded."""
    from tfdet.engines.doctor import check_driver  # imports modules that only GPU runs need

    info = read_driver_info()
    if info is None or not info.gpus:
        raise DeviceUnavailableError(
            "this machine has no NVIDIA GPU with a driver",
            "Run on a machine with one (see `tfdet doctor`), or pass `--device cpu`.",
        )
    driver = check_driver(environment, info)
    if driver.state == "missing":
        raise DeviceUnavailableError(f"driver {driver.detail}", driver.advice)


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold the lock beside `folder`; print a note before waiting for another process."""
    lock = FileLock(f"{folder}.lock")
    try:
        lock.acquire(timeout=1)
    except Timeout:
        sys.stderr.write(f"waiting for another tfdet that builds {folder.name}\n")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _build(folder: Path, python: Path, pip: PipRequirements, lock: Path, requirements: str) -> None:
    """Build the virtual environment `folder`. lock: for messages. requirements: the content of a lock file."""
    version, compiled = pip.python, pip.compiled
    if compiled and (missing := missing_tools(compiled)):
        raise RunFailedError(
            f"{', '.join(compiled.packages)} must be compiled, and {', '.join(missing)} is not on PATH",
            "Install a C++ compiler and make, or use `--engine docker`.",
        )
    sys.stderr.write(f"building the environment {folder.name} from {lock.name} (once)\n")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        # If this host has no such Python, uv may download it, with a network and from version 3.8 on.
        interpreter = str(find_python(version) or version)
        run_uv(["venv", "--quiet", "--python", interpreter, "--no-project", "--no-config", str(folder)], version)
        wheels_file = folder / "requirements.txt"
        wheels_file.write_text(without(requirements, compiled.packages) if compiled else requirements, "utf-8")
        run_uv(["pip", "sync", "--require-hashes", "--python", str(python), str(wheels_file)], version)
        if compiled:
            _compile(folder, python, version, compiled, restrict_to(requirements, compiled.packages))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # do not keep an incomplete environment
        raise
    (folder / "complete").touch()


def _compile(folder: Path, python: Path, version: str, compiled: CompiledPackages, requirements: str) -> None:
    """Compile packages without wheels in the environment, which has the framework to link with, and CMake."""
    sys.stderr.write(f"compiling {', '.join(compiled.packages)}, which takes minutes\n")
    sources = folder / "compiled.txt"
    sources.write_text(requirements, "utf-8")
    arguments = ["pip", "install", "--require-hashes", "--no-deps", "--no-build-isolation", "--python", str(python)]
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])
    run_uv([*arguments, "--requirement", str(sources)], version, {**compiled.variables, "PATH": path})


def uv_environ_from_pip(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables with pip's indexes and links of wheels as uv's variables, too."""
    translated = {"UV_EXTRA_INDEX_URL": environ.get("PIP_EXTRA_INDEX_URL")}
    translated["UV_FIND_LINKS"] = ",".join(environ.get("PIP_FIND_LINKS", "").split())
    return {name: value for name, value in translated.items() if value} | dict(environ)


def run_uv(arguments: Sequence[str], version: str, variables: Mapping[str, str] | None = None) -> None:
    """Run uv and show its progress; RunFailedError if it fails. version: of Python, for the message."""
    environ = uv_environ_from_pip(os.environ) | dict(variables or {})
    process = subprocess.Popen(
        [find_uv_bin(), *arguments], env=environ, stderr=subprocess.PIPE, text=True,
        preexec_fn=partial(set_parent_death_signal, os.getpid()),
    )  # fmt: skip
    lines: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if not line.startswith(" + "):  # an installed package, which is in the lock file anyway
            sys.stderr.write(line)
            sys.stderr.flush()
    if process.wait() == 0:
        return
    text = "".join(lines)
    cause = next((line.strip() for line in lines if line.lower().startswith("error")), "uv failed")
    if "no interpreter" in text.lower() or "Failed to inspect Python interpreter" in text:
        raise RunFailedError(
            f"no CPython {version} on this machine",
            f"Install CPython {version} (pyenv install {version}; keep its bin on PATH), or use `--engine docker`.",
        )
    if "No space left" in text or "os error 28" in text:
        raise RunFailedError("the disk is full", f"Free space for {cache_dir()}: an environment takes 1 to 5 GiB.")
    if "Failed to build" in text:
        raise RunFailedError(cause, "See the compiler's messages above; `tfdet doctor ENV` says what it needs.")
    raise RunFailedError(cause, "See uv's messages above; an environment cannot be built without a network.")


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the probe and return its exit code; after Ctrl-C or SIGTERM let it end its children first.

    A terminal sends Ctrl-C to the probe, too, but SIGTERM goes to this process alone, which passes it on.
    """
    try:
        with sigterm_as_keyboard_interrupt(process.terminate):
            return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
