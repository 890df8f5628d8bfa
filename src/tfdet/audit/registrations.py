"""Kernel registrations: read the ops of a TensorFlow wheel, with their devices and dtypes, without a GPU.

The wheel is unpacked into a temporary folder and imported in the environment's CPU virtual environment, which has its
dependencies.  TensorFlow fills its registry when its libraries load; no device is used.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tfdet.audit.wheels import Wheel, installed_path
from tfdet.base import console
from tfdet.base.errors import RunFailedError
from tfdet.base.paths import Project, cache_dir
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.models import Environment

Registrations = dict[str, dict[str, list[str]]]
"""{op: {device: [dtypes]}} of the ops with a GPU kernel; the device `DEFAULT` is any device."""

TENSORFLOW = "tensorflow"  # the only framework with such a registry here
_MINUTES = 10
_ADVICE = "The rest of the audit needs no TensorFlow: run it without --kernel-registrations."


def read_registrations(
    project: Project, key: str, environment: Environment, wheel: Wheel, libraries: Mapping[str, Path]
) -> Registrations:
    """Return the kernels of the ops that have a GPU kernel; RunFailedError if TensorFlow cannot be imported here."""
    console.print_note(f"reading the kernel registrations of {wheel.path.name}")
    python = VenvEngine(project).interpreter(key, environment, "cpu")
    with tempfile.TemporaryDirectory(prefix=".import-", dir=cache_dir()) as folder:
        _unpack(wheel.path, libraries, Path(folder))
        registrations = _query_tensorflow(python, Path(folder), project.runtime)
    devices = {"CPU", "GPU", "DEFAULT"}
    return {
        op: {device: dtypes for device, dtypes in sorted(kernels.items()) if device in devices}
        for op, kernels in sorted(registrations.items())
        if "GPU" in kernels
    }


def _unpack(wheel: Path, libraries: Mapping[str, Path], folder: Path) -> None:
    """Unpack the wheel as pip does, with hard links to the libraries that are unpacked already."""
    for name, file in libraries.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(file, folder / name)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = installed_path(member.filename)
            if name in libraries or member.is_dir() or "/include/" in name or ".." in PurePosixPath(name).parts:
                continue
            target = folder / PurePosixPath(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))


def _query_tensorflow(python: Path, folder: Path, runtime: Path) -> Registrations:
    """Import the TensorFlow in `folder` with this interpreter, and return all its kernel registrations."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    environ = {**inherited, "PYTHONPATH": f"{folder}{os.pathsep}{runtime}", "PYTHONDONTWRITEBYTECODE": "1",
               "PYTHONNOUSERSITE": "1"}  # fmt: skip
    try:
        process = subprocess.run(
            [python, "-m", "tfdet_probe.frameworks.tensorflow.kernels"], cwd=folder, env=environ, capture_output=True,
            text=True, timeout=_MINUTES * 60,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(f"TensorFlow did not import within {_MINUTES} minutes", _ADVICE) from error
    if process.returncode:
        message = next((line for line in reversed(process.stderr.splitlines()) if line.strip()), "no message")
        raise RunFailedError(f"this TensorFlow cannot be imported here: {message.strip()}", _ADVICE)
    registrations: Registrations = json.loads(process.stdout)
    return registrations
