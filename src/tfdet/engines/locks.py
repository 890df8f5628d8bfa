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

NVML_LOCK: Final = "nvml.txt"  # a separate file: the hashes of the environments' lock files are signed with records
_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(\[[\w,.-]+\])?==(?P<version>[\w.!+-]+)( ?;[^\\]*)? \\$")
_ADVICE = "Make it anew with scripts/update-locks; nothing was installed."
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def framework_of(project: Project, environment: Environment) -> Framework:
    return load_frameworks(project.matrix)[environment.framework]


def read_lock(project: Project, key: str, build: Device) -> str:
    """Return the text of an environment's lock file, for a GPU build with that of the NVML package."""
    paths = [project.lock(key, build), *([project.docker / "locks" / NVML_LOCK] if build == "gpu" else [])]
    return "".join(path.read_text("utf-8") for path in paths)


def without_nvidia(lock: str, kept_prefixes: Iterable[str] = ()) -> str:
    """Return a lock file's text without the packages of NVIDIA's libraries, except those with these prefixes."""
    return "".join(
        entry for entry in _entries(lock) if not entry.startswith("nvidia-") or entry.startswith(tuple(kept_prefixes))
    )


def without(lock: str, names: Container[str]) -> str:
    """Return a lock file's text without these packages."""
    return "".join(entry for entry in _entries(lock) if entry.partition("==")[0] not in names)


def restrict_to(lock: str, names: Container[str]) -> str:
    """Return a lock file's text with only these packages."""
    return "".join(entry for entry in _entries(lock) if entry.partition("==")[0] in names)


def parse_pins(lock: str) -> dict[str, str]:
    """Return {package: version} of a lock file's text."""
    return {pin["name"]: pin["version"] for line in lock.splitlines() if (pin := _PINNED.match(line))}


def _entries(lock: str) -> list[str]:
    return re.split(r"(?m)^(?=[A-Za-z0-9])", lock)


def check_lock(path: Path, *, framework: Framework | None = None) -> None:
    """Raise DataError for lines that are neither a pinned requirement nor its hash, and for missing requirements.

    Every lock file must pin pytest, and with `framework` a package whose name begins with that of the framework.
    """
    faults: list[str] = []
    names: list[str] = []
    expects_hash = False
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}", _ADVICE) from error
    for number, line in enumerate(lines, 1):
        if not expects_hash and (not line.strip() or line.startswith("#")):
            continue
        if expects_hash and _HASH.match(line):
            expects_hash = line.endswith("\\")
        elif not expects_hash and (pin := _PINNED.match(line)):
            names.append(pin["name"].lower())
            expects_hash = True
        else:
            expected = "a sha256 hash of the requirement above" if expects_hash else "NAME==VERSION with hashes"
            faults.append(f"{path}:{number}: {line.strip()[:60]!r} is not {expected}")
            expects_hash = False
    if expects_hash:
        faults.append(f"{path}:{len(lines)}: ends in the middle of a requirement")
    if "pytest" not in names:
        faults.append(f"{path}: no pytest is pinned")
    if framework and not any(name.startswith(framework.package) for name in names):
        faults.append(f"{path}: no {framework.name} is pinned")
    if faults:
        raise DataError("\n".join(faults), _ADVICE)
