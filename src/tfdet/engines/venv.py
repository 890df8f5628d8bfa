"""The venv engine: a virtual environment on this host, exactly as the lock file says."""

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

# What of the caller's shell an environment may see: its own switches come from the solutions.
_PASSED = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
           FRAMEWORKS)  # fmt: skip


class VenvEngine:
    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, request: Request) -> int:
        """Run the suite; the environment is made first where it is not there yet."""
        _pip_requirements(request.key, request.environment)
        kind = request.kind
        if kind.needs_driver:
            require_gpu(request.environment)
        python = self.interpreter(
            request.key, request.environment, kind.claim_device, without_vendor_libraries=kind.virtual
        )
        library = vgpu.library_folder(self._project) if kind.virtual else None
        suite = self._project.suite(request.environment.framework)
        command = [str(python), "-m", "tfdet_probe", "--plan", str(request.plan), "--suite", str(suite)]
        command += ["--out", str(request.journal), *request.selection.probe_arguments()]
        command += ["--exit-with", str(os.getpid())]
        # The probe's table goes where its progress goes: standard output is for the host's.
        return wait(subprocess.Popen(command, env=self._environ(library), stdin=subprocess.PIPE, stdout=sys.stderr))

    def interpreter(
        self, key: str, environment: Environment, build: Device, *, without_vendor_libraries: bool = False
    ) -> Path:
        """The Python of this environment, made (once) from its lock file.

        build: of the framework.  without_vendor_libraries: for the virtual GPU, which replaces them.
        """
        pip = _pip_requirements(key, environment)
        lock = self._project.lock(key, build)
        if not is_there(lock):
            raise TfdetError(f"{lock} not found", f"Create it: scripts/update-locks {key}")
        framework = framework_of(self._project, environment)
        check_lock(lock, framework=framework)
        locked = read_lock(self._project, key, build)
        pinned = without_nvidia(locked, framework.virtual_gpu_packages) if without_vendor_libraries else locked
        compiled = pip.compiled.model_dump_json(exclude={"conflicts"}) if pip.compiled else ""
        digest = hashlib.sha256((pinned + compiled).encode()).hexdigest()[:10]
        folder = cache_dir() / "venvs" / f"{key}-{build}-{digest}"
        python = folder / "bin" / "python"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder):
            if not is_there(folder / "complete"):
                _build(folder, python, pip, lock, pinned)
        return python

    def _environ(self, library: Path | None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _PASSED if name in os.environ}
        return {
            **kept,
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
    from tfdet.engines.doctor import check_driver  # only GPU runs need what it loads

    found = read_driver_info()
    if found is None or not found.gpus:
        raise DeviceUnavailableError(
            "this machine has no NVIDIA GPU with a driver",
            "Run on a machine with one (see `tfdet doctor`), or pass `--device cpu`.",
        )
    driver = check_driver(environment, found)
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


def _build(folder: Path, python: Path, pip: PipRequirements, lock: Path, pinned: str) -> None:
    version, compiled = pip.python, pip.compiled
    if compiled and (missing := missing_tools(compiled)):
        raise RunFailedError(
            f"{', '.join(compiled.packages)} must be compiled, and {', '.join(missing)} is not on PATH",
            "Install a C++ compiler and make, or use `--engine docker`.",
        )
    sys.stderr.write(f"building the environment {folder.name} from {lock.name} (once)\n")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        # Without one here uv may download it, given a network and version 3.8 or later.
        interpreter = str(find_python(version) or version)
        run_uv(["venv", "--quiet", "--python", interpreter, "--no-project", "--no-config", str(folder)], version)
        ready = folder / "requirements.txt"
        ready.write_text(without(pinned, compiled.packages) if compiled else pinned, "utf-8")
        run_uv(["pip", "sync", "--require-hashes", "--python", str(python), str(ready)], version)
        if compiled:
            _compile(folder, python, version, compiled, restrict_to(pinned, compiled.packages))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # leave nothing half built
        raise
    (folder / "complete").touch()


def _compile(folder: Path, python: Path, version: str, compiled: CompiledPackages, pinned: str) -> None:
    """Compile packages without wheels, with what is installed: they link to the framework, and find CMake there."""
    sys.stderr.write(f"compiling {', '.join(compiled.packages)}, which takes minutes\n")
    sources = folder / "compiled.txt"
    sources.write_text(pinned, "utf-8")
    arguments = ["pip", "install", "--require-hashes", "--no-deps", "--no-build-isolation", "--python", str(python)]
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])
    run_uv([*arguments, "--requirement", str(sources)], version, {**compiled.variables, "PATH": path})


def uv_environ_from_pip(environ: Mapping[str, str]) -> dict[str, str]:
    """Translate pip's variables for uv, which does not read them: further places of wheels (such as CPU builds)."""
    told = {"UV_EXTRA_INDEX_URL": environ.get("PIP_EXTRA_INDEX_URL")}
    told["UV_FIND_LINKS"] = ",".join(environ.get("PIP_FIND_LINKS", "").split())
    return {name: value for name, value in told.items() if value} | dict(environ)


def run_uv(arguments: Sequence[str], version: str, variables: Mapping[str, str] | None = None) -> None:
    """Run uv and show its progress; raise its failure as one line of cause and one of advice."""
    environ = uv_environ_from_pip(os.environ) | dict(variables or {})
    process = subprocess.Popen(
        [find_uv_bin(), *arguments], env=environ, stderr=subprocess.PIPE, text=True,
        preexec_fn=partial(set_parent_death_signal, os.getpid()),
    )  # fmt: skip
    said: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        if not line.startswith(" + "):  # what it brought, one by one, says nothing that the lock file does not
            sys.stderr.write(line)
            sys.stderr.flush()
    if process.wait() == 0:
        return
    text = "".join(said)
    cause = next((line.strip() for line in said if line.lower().startswith("error")), "uv failed")
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
    """The exit code; on Ctrl-C the probe ends its children itself, and then we go.

    A terminal tells the probe of Ctrl-C; of a SIGTERM for us it would not know, and its children die with it.
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
