"""Download of wheels from the package index with pip: those of lock files, and any NAME==VERSION.

The wheels are stored in the cache under their own names, complete ones only.  Nothing is installed.
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

# Wheels that pip may choose, in order of preference; the scanner reads libraries of x86-64 Linux only.
_PLATFORMS = (*(f"manylinux_2_{minor}" for minor in range(50, 4, -1)), "manylinux2014", "manylinux2010", "manylinux1",
              "linux")  # fmt: skip
_THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_PYTHONS = (_THIS_PYTHON, *(python for python in ("3.13", "3.12", "3.11", "3.10", "3.9", "3.8", "3.7", "3.6", "3.14")
                            if python != _THIS_PYTHON))  # fmt: skip
"""The Python versions to try, in order: the wheels of a release have the same GPU code for each of them."""
_MAX_NAMED_VERSIONS = 6  # in an error message


class _NoSuchWheelError(TfdetError):
    """The index has no such wheel for this Python.  versions: those for which it has a wheel."""

    def __init__(self, versions: list[str]) -> None:
        super().__init__("no such wheel")
        self.versions = versions


def environment_wheel(project: Project, key: str, environment: Environment) -> Wheel:
    """Return the wheel with the GPU code of the environment `key`, from the cache or from the package index.

    UsageError: the environment is an image only.  RunFailedError: no network, no such wheel, no space.
    """
    if environment.pip is None:
        raise UsageError(
            f"{key} is an image, not a wheel",
            "Copy its TensorFlow out of the image and give its folder: tfdet audit DIRECTORY.",
        )
    # `code` is the requirement of the package with the GPU code, if the package of `gpu` only depends on it.
    requirement = Requirement(environment.pip.code or environment.pip.gpu)
    hashes = _locked_hashes(project.lock(key, "gpu"), requirement.name, str(requirement.specifier))
    folder = _folder()
    with FileLock(folder / f".{key}.lock"):
        wheel = _find_cached_wheel(folder, requirement, environment.pip.python, hashes)
        return wheel or _download_locked_wheel(folder, requirement, environment.pip.python, hashes)


def parse_requirement(text: str) -> Requirement:
    """Parse NAME==VERSION; UsageError for any other requirement, since different versions are different builds."""
    try:
        requirement = Requirement(text)
        (pin,) = requirement.specifier
        Version(pin.version)
    except (InvalidRequirement, InvalidVersion, ValueError) as error:
        raise UsageError(f"{text}: not one version of one package", "Name it as in torch==2.14.1.") from error
    if pin.operator != "==" or requirement.url or requirement.marker:
        raise UsageError(f"{text}: not one version of one package", "Name it as in torch==2.14.1.")
    return requirement


def package_wheel(requirement: Requirement) -> Wheel:
    """Return a wheel of this version for x86-64 Linux, from the cache or from the index of pip's settings.

    RunFailedError: no network, no such version, no space.
    """
    folder = _folder()
    pinned = f"{requirement.name}{requirement.specifier}"
    with FileLock(folder / f".{canonicalize_name(requirement.name)}{requirement.specifier}.lock"):
        if wheel := _find_cached_download(folder, requirement):
            console.print_note(f"using {wheel.path.name} from {folder}")
            return wheel
        console.print_note(f"downloading {pinned} (once; nothing is installed)")
        versions: dict[str, None] = {}
        for python in _PYTHONS:
            try:
                return _download(folder, pinned, [pinned], python)
            except _NoSuchWheelError as error:
                versions.update(dict.fromkeys(error.versions))
    raise _no_wheel_error(requirement, list(versions))


def _folder() -> Path:
    folder = cache_dir() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _find_cached_download(folder: Path, requirement: Requirement) -> Wheel | None:
    """Return a wheel of the cache. A local version (such as +cu126) must be requested explicitly."""
    (pin,) = requirement.specifier
    paths = (path for path, _ in _matching_wheels(folder, requirement.name, pin.version))
    return next((Wheel(path, sha256(path)) for path in paths), None)


def _matching_wheels(folder: Path, name: str, version: str) -> Iterator[tuple[Path, set[str]]]:
    """Yield each wheel of this package and version in the folder, with its interpreter tags, such as cp311 or py3."""
    expected = canonicalize_name(name), Version(version)
    for path in sorted(folder.glob("*.whl")):
        try:
            wheel_name, wheel_version, _, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        if (wheel_name, wheel_version) == expected:
            yield path, {tag.interpreter for tag in tags}


def _no_wheel_error(requirement: Requirement, versions: list[str]) -> RunFailedError:
    pinned = f"{requirement.name}{requirement.specifier}"
    if versions:
        newest = sorted(versions, key=Version, reverse=True)
        more = " ..." if len(newest) > _MAX_NAMED_VERSIONS else ""
        return RunFailedError(
            f"{pinned}: no such version has a wheel for x86-64 Linux where pip looks",
            f"Available: {', '.join(newest[:_MAX_NAMED_VERSIONS])}{more}. For a build from another index set "
            "PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS.",
        )
    return RunFailedError(
        f"{pinned}: no wheel of {requirement.name} for x86-64 Linux where pip looks",
        "Is the name right? Of some packages the index has the sources alone: build its wheel, or bring the one that "
        "its authors publish elsewhere, and give the path: tfdet audit WHEEL.",
    )


def _locked_hashes(lock: Path, name: str, pin: str) -> list[str]:
    """Return the SHA-256 hashes that the lock file has for the wheels of this version."""
    try:
        text = lock.read_text("utf-8")
    except OSError as error:
        raise DataError(f"{lock}: {error.strerror}", "Make it: scripts/update-locks.") from error
    entry = re.search(rf"^{re.escape(name + pin)} \\\n((?:    --hash=sha256:[0-9a-f]{{64}}(?: \\)?\n)+)", text, re.M)
    if entry is None:
        raise DataError(f"{lock}: {name}{pin} is not pinned there", "Make it anew: scripts/update-locks.")
    return re.findall(r"sha256:([0-9a-f]{64})", entry[1])


def _find_cached_wheel(folder: Path, requirement: Requirement, python: str, hashes: list[str]) -> Wheel | None:
    (pin,) = requirement.specifier
    accepted = {f"cp{python.replace('.', '')}", "py3"}
    for path, interpreters in _matching_wheels(folder, requirement.name, pin.version):
        if accepted.isdisjoint(interpreters):
            continue
        digest = sha256(path)
        if digest in hashes:
            return Wheel(path, digest)
        path.unlink()  # the file was changed after its download
    return None


def _download_locked_wheel(folder: Path, requirement: Requirement, python: str, hashes: list[str]) -> Wheel:
    pinned = f"{requirement.name}{requirement.specifier}"
    console.print_note(f"downloading {pinned} for CPython {python} (once, 0.3 to 0.9 GiB)")
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
        requirements = Path(part, "requirement.txt")
        requirements.write_text(" ".join([pinned, *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n", "utf-8")
        # The lock file decides: the user's own constraints for pip do not apply.
        environ = {"PIP_CONSTRAINT": os.devnull}
        try:
            return _download(folder, pinned, ["--require-hashes", "--requirement", str(requirements)], python, environ)
        except _NoSuchWheelError as error:
            advice = "Pass the path of a wheel instead: tfdet audit WHEEL."
            raise RunFailedError(f"{pinned}: the package index has no such wheel", advice) from error


def _download(
    folder: Path, pinned: str, arguments: Sequence[str], python: str, environ: Mapping[str, str] = {}
) -> Wheel:
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
        _pip_download(pinned, arguments, python, Path(part), environ)
        wheel = next(Path(part).glob("*.whl"))
        wheel.replace(folder / wheel.name)
    path = folder / wheel.name
    return Wheel(path, sha256(path))


def _pip_download(pinned: str, arguments: Sequence[str], python: str, folder: Path, environ: Mapping[str, str]) -> None:
    """Run `pip download`, which checks hashes, shows its progress on standard error, and resumes cut connections."""
    version = python.replace(".", "")
    abi = f"cp{version}m" if int(version) < 38 else f"cp{version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--resume-retries", "5", "--retries", "2", *arguments]
    command += ["--dest", str(folder), "--implementation", "cp", "--python-version", python, "--abi", abi]
    for platform in _PLATFORMS:
        command += ["--platform", f"{platform}_x86_64"]
    # pip needs space for temporary files as large as the wheel, and the usual folder for them is often in memory.
    process = subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(folder), **environ},
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    stderr = process.stderr.read()
    if process.wait():
        raise _explain_pip_error(stderr, pinned)


def _explain_pip_error(stderr: str, pinned: str) -> TfdetError:
    """Return the error that pip's output describes."""
    if "No space left" in stderr:
        return RunFailedError("the disk is full", f"Free a gigabyte or two for {cache_dir()}.")
    if "HASHES" in stderr:
        return DataError(f"{pinned}: downloaded file does not match the lock file's hash", "It is deleted; try again.")
    if re.search(r"connection|timed out|name resolution|network|proxy", stderr, re.I):
        return RunFailedError(
            f"cannot download {pinned}: package index unreachable",
            "Copy the wheel to this machine and pass its path: tfdet audit WHEEL.",
        )
    if "conflicting dependencies" in stderr:  # though --no-deps names a single package: a constraint forbids it
        return RunFailedError(
            f"{pinned}: forbidden by a constraint of pip's settings",
            "See pip config list; PIP_CONSTRAINT=/dev/null disables constraints.",
        )
    if match := re.search(r"\(from versions: ([^)]*)\)", stderr):
        return _NoSuchWheelError([version for version in match[1].split(", ") if version != "none"])
    cause = next((line for line in stderr.splitlines() if line.startswith("ERROR")), "pip failed")
    return RunFailedError(
        f"{pinned}: {cause.removeprefix('ERROR: ')}", "Pass the path of a wheel instead: tfdet audit WHEEL."
    )
