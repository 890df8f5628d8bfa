"""Lock files: exact versions with hashes, checked before anything is installed from them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import load_frameworks
from tfdet.matrix.models import Environment, Framework

NVML_LOCK: Final = "nvml.txt"  # beside the environments' own, whose hashes are signed with their records
_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(\[[\w,.-]+\])?==(?P<version>[\w.!+-]+)( ?;[^\\]*)? \\$")
_ADVICE = "Make it anew with scripts/update-locks; nothing was installed."
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def framework_of(project: Project, environment: Environment) -> Framework:
    return load_frameworks(project.matrix)[environment.framework]


def read_lock(project: Project, key: str, build: Device) -> str:
    """What an environment is made of: its own lock and, for a GPU, the one of the package that reads a GPU's state."""
    paths = [project.lock(key, build), *([project.docker / "locks" / NVML_LOCK] if build == "gpu" else [])]
    return "".join(path.read_text("utf-8") for path in paths)


def without_nvidia(lock: str, kept: Iterable[str] = ()) -> str:
    """A lock without the packages of NVIDIA's libraries. kept: how the names of those that stay begin."""
    return "".join(
        entry for entry in _entries(lock) if not entry.startswith("nvidia-") or entry.startswith(tuple(kept))
    )


def without(lock: str, names: Container[str]) -> str:
    """A lock without these packages."""
    return "".join(entry for entry in _entries(lock) if entry.partition("==")[0] not in names)


def restrict_to(lock: str, names: Container[str]) -> str:
    """A lock of these packages alone."""
    return "".join(entry for entry in _entries(lock) if entry.partition("==")[0] in names)


def parse_pins(lock: str) -> dict[str, str]:
    """{package: version}."""
    return {pin["name"]: pin["version"] for line in lock.splitlines() if (pin := _PINNED.match(line))}


def _entries(lock: str) -> list[str]:
    return re.split(r"(?m)^(?=[A-Za-z0-9])", lock)


def check_lock(path: Path, *, framework: Framework | None = None) -> None:
    """DataError naming every line that is not a pinned requirement or its hash, and pins that are missing.

    Each lock has pytest; an environment's also its framework, whose requirements begin with its package's name.
    """
    faults: list[str] = []
    names: list[str] = []
    wants_hash = False
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}", _ADVICE) from error
    for number, line in enumerate(lines, 1):
        if not wants_hash and (not line.strip() or line.startswith("#")):
            continue
        if wants_hash and _HASH.match(line):
            wants_hash = line.endswith("\\")
        elif not wants_hash and (pin := _PINNED.match(line)):
            names.append(pin["name"].lower())
            wants_hash = True
        else:
            wanted = "a sha256 hash of the requirement above" if wants_hash else "NAME==VERSION with hashes"
            faults.append(f"{path}:{number}: {line.strip()[:60]!r} is not {wanted}")
            wants_hash = False
    if wants_hash:
        faults.append(f"{path}:{len(lines)}: ends in the middle of a requirement")
    if "pytest" not in names:
        faults.append(f"{path}: no pytest is pinned")
    if framework and not any(name.startswith(framework.package) for name in names):
        faults.append(f"{path}: no {framework.name} is pinned")
    if faults:
        raise DataError("\n".join(faults), _ADVICE)
