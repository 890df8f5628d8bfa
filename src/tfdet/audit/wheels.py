"""Wheels: bring the one that an environment's GPU lock names, and take its shared libraries out of it.

Both are kept in the cache, under the wheel's own name and checksum; nothing half made is ever found there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from filelock import FileLock
from packaging.requirements import Requirement
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from tfdet.base import console
from tfdet.base.errors import DataError, RunFailed, TfdetError, UsageError
from tfdet.base.paths import Project, cache_dir
from tfdet.matrix.models import Environment

# pip takes a wheel of any of these; the lock's hashes say which one it has to be.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux_2_12",
              "manylinux2010", "manylinux1")  # fmt: skip
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_DATA = re.compile(r"^[^/]+\.data/(purelib|platlib)/")  # where old wheels keep what is installed
_MOST_MEMBERS = 200_000
_MOST_BYTES = 16 << 30  # of all libraries of a wheel; TensorFlow's are 1 to 2 GiB
_MOST_RATIO = 100  # of unpacked to packed; TensorFlow's libraries have 2 to 8
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Wheel:
    path: Path
    sha256: str


@dataclass
class Unpacked:
    """The shared libraries of a wheel: {path inside an installation: file}, and what could not be read."""

    libraries: dict[str, Path] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def environment_wheel(project: Project, key: str, environment: Environment) -> Wheel:
    """The GPU build that `key` installs, from the cache or from the package index.

    UsageError: the environment is an image only.  RunFailed: no network, no such wheel, no space.
    """
    if environment.pip is None:
        raise UsageError(
            f"{key} is an image, not a wheel",
            "Copy its TensorFlow out of the image and give its folder: tfdet audit DIRECTORY.",
        )
    requirement = Requirement(environment.pip.gpu)
    hashes = _locked_hashes(project.lock(key, "gpu"), requirement.name, str(requirement.specifier))
    folder = cache_dir() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{key}.lock"):
        found = _cached(folder, requirement, environment.pip.python, hashes)
        return found or _download(folder, requirement, environment.pip.python, hashes)


def _locked_hashes(lock: Path, name: str, pin: str) -> list[str]:
    """The SHA-256 of every wheel of this version, as the lock file has them."""
    try:
        text = lock.read_text("utf-8")
    except OSError as error:
        raise DataError(f"{lock}: {error.strerror}", "Make it: scripts/lock.") from error
    entry = re.search(rf"^{re.escape(name + pin)} \\\n((?:    --hash=sha256:[0-9a-f]{{64}}(?: \\)?\n)+)", text, re.M)
    if entry is None:
        raise DataError(f"{lock}: {name}{pin} is not pinned there", "Make it anew: scripts/lock.")
    return re.findall(r"sha256:([0-9a-f]{64})", entry[1])


def _cached(folder: Path, requirement: Requirement, python: str, hashes: list[str]) -> Wheel | None:
    version = str(requirement.specifier).removeprefix("==")
    tag = f"cp{python.replace('.', '')}"
    for path in folder.glob(f"{requirement.name.replace('-', '_')}-{version}-{tag}-*.whl"):
        digest = sha256(path)
        if digest in hashes:
            return Wheel(path, digest)
        path.unlink()  # it was brought whole: since then somebody changed it
    return None


def _download(folder: Path, requirement: Requirement, python: str, hashes: list[str]) -> Wheel:
    pinned = f"{requirement.name}{requirement.specifier}"
    console.note(f"bringing {pinned} for CPython {python} (once, 0.3 to 0.6 GiB)")
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
        wanted = Path(part, "requirement.txt")
        wanted.write_text(" ".join([pinned, *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n", "utf-8")
        _pip_download(wanted, python, Path(part))
        wheel = next(Path(part).glob("*.whl"))
        wheel.replace(folder / wheel.name)
    path = folder / wheel.name
    return Wheel(path, sha256(path))


def _pip_download(wanted: Path, python: str, into: Path) -> None:
    """pip checks the hash, shows its progress on our standard error, and resumes a connection that was cut."""
    version = python.replace(".", "")
    abi = f"cp{version}m" if int(version) < 38 else f"cp{version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--require-hashes", "--resume-retries", "5", "--retries", "2"]
    command += ["--requirement", str(wanted), "--dest", str(into)]
    command += ["--implementation", "cp", "--python-version", version, "--abi", abi]
    for platform in _PLATFORMS:
        command += ["--platform", f"{platform}_x86_64"]
    environ = {**os.environ, "PIP_CONSTRAINT": os.devnull}  # the lock says which; what bounds a user's own pip does not
    process = subprocess.Popen(command, env=environ, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
    if process.wait():
        raise _why("".join(said), wanted.read_text("utf-8").split(" ")[0])


def _why(said: str, pinned: str) -> TfdetError:
    """What pip's messages mean."""
    if "No space left" in said:
        return RunFailed("the disk is full", f"Free a gigabyte or two for {cache_dir()}.")
    if "HASHES" in said:
        return DataError(f"{pinned}: what was brought is not what the lock file names", "Nothing was kept. Try again.")
    if re.search(r"connection|timed out|name resolution|network|proxy", said, re.I):
        return RunFailed(
            f"{pinned} cannot be brought: no connection to the package index",
            "Carry the wheel here and give its path: tfdet audit WHEEL.",
        )
    cause = next((line for line in said.splitlines() if line.startswith("ERROR")), "pip failed")
    return RunFailed(f"{pinned}: {cause.removeprefix('ERROR: ')}", "Give a wheel's path instead: tfdet audit WHEEL.")


def sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def unpack(wheel: Wheel) -> Unpacked:
    """Take the shared libraries out, into the cache, where they can be mapped.

    A member that is damaged is a fault, and the others are taken; DataError: the file is no whole zip.
    """
    with _opened(wheel.path) as archive:
        members = {
            installed(member.filename): member
            for member in archive.infolist()
            if not member.is_dir() and is_library(member.filename)
        }
        _refuse_bomb(wheel.path, members)
        folder = cache_dir() / "libraries" / f"{wheel.path.stem}-{wheel.sha256[:12]}"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            return _take_out(archive, wheel.path, members, folder)


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        size = path.stat().st_size
        raise DataError(
            f"{path}: no zip archive, or cut short at offset {size}: {error}", "Bring the wheel again."
        ) from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error


def is_library(name: str) -> bool:
    return _LIBRARY.search(name) is not None


def installed(name: str) -> str:
    """Where pip puts a member, below site-packages."""
    return _DATA.sub("", name)


def _refuse_bomb(path: Path, members: dict[str, zipfile.ZipInfo]) -> None:
    """DataError before a byte is unpacked: sizes that no build of anything has, or names that lead elsewhere."""
    advice = "This is no wheel that anybody built; nothing was unpacked."
    if len(members) > _MOST_MEMBERS:
        raise DataError(f"{path}: {len(members)} libraries in it", advice)
    for name, member in members.items():
        where = f"{path}: {member.filename} at offset {member.header_offset}"
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise DataError(f"{where}: its name leads out of the archive", advice)
        if member.file_size > _MOST_RATIO * max(member.compress_size, _CHUNK):
            raise DataError(f"{where}: {member.compress_size} bytes that unpack to {member.file_size}", advice)
    total = sum(member.file_size for member in members.values())
    if total > _MOST_BYTES:
        raise DataError(f"{path}: its libraries unpack to {total >> 30} GiB", advice)


def _take_out(archive: zipfile.ZipFile, path: Path, members: dict[str, zipfile.ZipInfo], folder: Path) -> Unpacked:
    found = Unpacked()
    missing = {n: m for n, m in members.items() if not _there(folder / n, m)}
    needed = sum(member.file_size for member in missing.values())
    if needed > shutil.disk_usage(folder).free:
        raise RunFailed(f"{folder}: no room for {needed >> 20} MiB of libraries", "Free some space and run again.")
    with _progress(path.name, needed) as advance:
        for name, member in missing.items():
            try:
                _write_member(archive, member, folder / name, advance)
            except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
                found.faults.append(f"{path}: {member.filename} at offset {member.header_offset}: {error}")
    found.libraries = {name: folder / name for name in sorted(members) if (folder / name).is_file()}
    return found


def _there(file: Path, member: zipfile.ZipInfo) -> bool:
    return file.is_file() and file.stat().st_size == member.file_size


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's standard error; what it yields advances it by bytes."""
    columns = (TextColumn("unpacking {task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    hidden = not sys.stderr.isatty() or not total
    with Progress(*columns, console=console.err(), transient=True, disable=hidden) as bar:
        task = bar.add_task(name, total=total)
        yield lambda size: bar.advance(task, size)


def _write_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path, advance: Callable[[int], None]
) -> None:
    """All or nothing; zipfile never gives more bytes than the member declares."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    try:
        with archive.open(member) as source, part.open("wb") as out:
            while chunk := source.read(_CHUNK):
                out.write(chunk)
                advance(len(chunk))
        if part.stat().st_size != member.file_size:
            raise zipfile.BadZipFile(f"{part.stat().st_size} bytes of {member.file_size}")
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)
