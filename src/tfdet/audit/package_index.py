"""Wheels from the package index, by pip and its settings: those that environments lock, and any NAME==VERSION.

They are kept in the cache, under their own names; nothing half made is ever found there.  Nothing is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from filelock import FileLock
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from tfdet.audit.wheels import Wheel
from tfdet.base import console
from tfdet.base.errors import DataError, RunFailedError, TfdetError, UsageError
from tfdet.base.paths import Project, cache_dir
from tfdet.base.untrusted import sha256
from tfdet.matrix.models import Environment

# pip takes a wheel of any of these, newest first; the scanner reads libraries of x86-64 Linux only.
_PLATFORMS = (*(f"manylinux_2_{minor}" for minor in range(50, 4, -1)), "manylinux2014", "manylinux2010", "manylinux1",
              "linux")  # fmt: skip
_HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
_PYTHONS = (_HERE, *(python for python in ("3.13", "3.12", "3.11", "3.10", "3.9", "3.8", "3.7", "3.6", "3.14")
                     if python != _HERE))  # fmt: skip
"""Whose wheels are looked for: the GPU code is the same in all, and any that there is will do."""
_MAX_NAMED_VERSIONS = 6  # versions that an error names


class _NoSuchWheelError(TfdetError):
    """The index has none for this Python; `versions` are those that it has one of."""

    def __init__(self, versions: list[str]) -> None:
        super().__init__("no such wheel")
        self.versions = versions


def environment_wheel(project: Project, key: str, environment: Environment) -> Wheel:
    """The wheel with the GPU code that `key` installs, from the cache or from the package index.

    UsageError: the environment is an image only.  RunFailedError: no network, no such wheel, no space.
    """
    if environment.pip is None:
        raise UsageError(
            f"{key} is an image, not a wheel",
            "Copy its TensorFlow out of the image and give its folder: tfdet audit DIRECTORY.",
        )
    requirement = Requirement(environment.pip.code or environment.pip.gpu)
    hashes = _locked_hashes(project.lock(key, "gpu"), requirement.name, str(requirement.specifier))
    folder = _folder()
    with FileLock(folder / f".{key}.lock"):
        found = _cached(folder, requirement, environment.pip.python, hashes)
        return found or _locked(folder, requirement, environment.pip.python, hashes)


def requirement(text: str) -> Requirement:
    """NAME==VERSION; UsageError where it is anything else, for two versions are two builds."""
    try:
        asked = Requirement(text)
        (pin,) = asked.specifier
        Version(pin.version)
    except (InvalidRequirement, InvalidVersion, ValueError) as error:
        raise UsageError(f"{text}: not one version of one package", "Name it as in torch==2.14.1.") from error
    if pin.operator != "==" or asked.url or asked.marker:
        raise UsageError(f"{text}: not one version of one package", "Name it as in torch==2.14.1.")
    return asked


def any_wheel(asked: Requirement) -> Wheel:
    """A wheel of this version for x86-64 Linux, from the cache or from where pip's settings say.

    RunFailedError: no network, no such version, no space.
    """
    folder = _folder()
    pinned = f"{asked.name}{asked.specifier}"
    with FileLock(folder / f".{canonicalize_name(asked.name)}{asked.specifier}.lock"):
        if found := _cached_download(folder, asked):
            console.print_note(f"using {found.path.name} from {folder}")
            return found
        console.print_note(f"downloading {pinned} (once; nothing is installed)")
        versions: dict[str, None] = {}
        for python in _PYTHONS:
            try:
                return _download(folder, pinned, [pinned], python)
            except _NoSuchWheelError as error:
                versions.update(dict.fromkeys(error.versions))
    raise _no_wheel_error(asked, list(versions))


def _folder() -> Path:
    folder = cache_dir() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _cached_download(folder: Path, asked: Requirement) -> Wheel | None:
    """Return a wheel of the cache. A local version (such as +cu126) must be requested explicitly."""
    (pin,) = asked.specifier
    return next((Wheel(path, sha256(path)) for path, _ in _matching_wheels(folder, asked.name, pin.version)), None)


def _matching_wheels(folder: Path, name: str, version: str) -> Iterator[tuple[Path, set[str]]]:
    """The wheels there whose names say so, each with the interpreters that it is for: cp311, py3."""
    wanted = canonicalize_name(name), Version(version)
    for path in sorted(folder.glob("*.whl")):
        try:
            found, its, _, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:  # somebody else's
            continue
        if (found, its) == wanted:
            yield path, {tag.interpreter for tag in tags}


def _no_wheel_error(asked: Requirement, versions: list[str]) -> RunFailedError:
    pinned = f"{asked.name}{asked.specifier}"
    if versions:
        newest = sorted(versions, key=Version, reverse=True)
        more = " ..." if len(newest) > _MAX_NAMED_VERSIONS else ""
        return RunFailedError(
            f"{pinned}: no such version has a wheel for x86-64 Linux where pip looks",
            f"Available: {', '.join(newest[:_MAX_NAMED_VERSIONS])}{more}. For a build from another index set "
            "PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS.",
        )
    return RunFailedError(
        f"{pinned}: no wheel of {asked.name} for x86-64 Linux where pip looks",
        "Is the name right? Of some packages the index has the sources alone: build its wheel, or bring the one that "
        "its authors publish elsewhere, and give the path: tfdet audit WHEEL.",
    )


def _locked_hashes(lock: Path, name: str, pin: str) -> list[str]:
    """The SHA-256 of every wheel of this version, as the lock file has them."""
    try:
        text = lock.read_text("utf-8")
    except OSError as error:
        raise DataError(f"{lock}: {error.strerror}", "Make it: scripts/update-locks.") from error
    entry = re.search(rf"^{re.escape(name + pin)} \\\n((?:    --hash=sha256:[0-9a-f]{{64}}(?: \\)?\n)+)", text, re.M)
    if entry is None:
        raise DataError(f"{lock}: {name}{pin} is not pinned there", "Make it anew: scripts/update-locks.")
    return re.findall(r"sha256:([0-9a-f]{64})", entry[1])


def _cached(folder: Path, requirement: Requirement, python: str, hashes: list[str]) -> Wheel | None:
    (pin,) = requirement.specifier
    served = {f"cp{python.replace('.', '')}", "py3"}
    for path, interpreters in _matching_wheels(folder, requirement.name, pin.version):
        if served.isdisjoint(interpreters):
            continue
        digest = sha256(path)
        if digest in hashes:
            return Wheel(path, digest)
        path.unlink()  # its download was complete: it was changed since
    return None


def _locked(folder: Path, requirement: Requirement, python: str, hashes: list[str]) -> Wheel:
    pinned = f"{requirement.name}{requirement.specifier}"
    console.print_note(f"downloading {pinned} for CPython {python} (once, 0.3 to 0.9 GiB)")
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
        wanted = Path(part, "requirement.txt")
        wanted.write_text(" ".join([pinned, *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n", "utf-8")
        # The lock says which; what bounds a user's own pip does not.
        unbound = {"PIP_CONSTRAINT": os.devnull}
        try:
            return _download(folder, pinned, ["--require-hashes", "--requirement", str(wanted)], python, unbound)
        except _NoSuchWheelError as error:
            advice = "Pass the path of a wheel instead: tfdet audit WHEEL."
            raise RunFailedError(f"{pinned}: the package index has no such wheel", advice) from error


def _download(folder: Path, pinned: str, wanted: Sequence[str], python: str, environ: Mapping[str, str] = {}) -> Wheel:
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
        _pip_download(pinned, wanted, python, Path(part), environ)
        wheel = next(Path(part).glob("*.whl"))
        wheel.replace(folder / wheel.name)
    path = folder / wheel.name
    return Wheel(path, sha256(path))


def _pip_download(pinned: str, wanted: Sequence[str], python: str, into: Path, environ: Mapping[str, str]) -> None:
    """pip checks hashes, shows its progress on our standard error, and resumes a connection that was cut."""
    version = python.replace(".", "")
    abi = f"cp{version}m" if int(version) < 38 else f"cp{version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--resume-retries", "5", "--retries", "2", *wanted, "--dest", str(into)]
    command += ["--implementation", "cp", "--python-version", python, "--abi", abi]
    for platform in _PLATFORMS:
        command += ["--platform", f"{platform}_x86_64"]
    # Where the wheel is to be is room for it; the folder for temporary files is often memory.
    process = subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(into), **environ},
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
    if process.wait():
        raise _explain_pip_error("".join(said), pinned)


def _explain_pip_error(said: str, pinned: str) -> TfdetError:
    """Return the error that pip's output describes."""
    if "No space left" in said:
        return RunFailedError("the disk is full", f"Free a gigabyte or two for {cache_dir()}.")
    if "HASHES" in said:
        return DataError(f"{pinned}: downloaded file does not match the lock file's hash", "It is deleted; try again.")
    if re.search(r"connection|timed out|name resolution|network|proxy", said, re.I):
        return RunFailedError(
            f"cannot download {pinned}: package index unreachable",
            "Copy the wheel to this machine and pass its path: tfdet audit WHEEL.",
        )
    if "conflicting dependencies" in said:  # of one package without what it depends on
        return RunFailedError(
            f"{pinned}: forbidden by a constraint of pip's settings",
            "See pip config list; PIP_CONSTRAINT=/dev/null disables constraints.",
        )
    if found := re.search(r"\(from versions: ([^)]*)\)", said):
        return _NoSuchWheelError([version for version in found[1].split(", ") if version != "none"])
    cause = next((line for line in said.splitlines() if line.startswith("ERROR")), "pip failed")
    return RunFailedError(
        f"{pinned}: {cause.removeprefix('ERROR: ')}", "Pass the path of a wheel instead: tfdet audit WHEEL."
    )
