"""Extraction of shared libraries and files of GPU code from wheels.

The files are stored in the cache, in a folder with the wheel's name and checksum; each is written atomically.
"""

from __future__ import annotations

import errno
import lzma
import os
import re
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from filelock import FileLock
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from tfdet.audit.standalone_code import SUFFIXES, without_redundant_ptx
from tfdet.base import console
from tfdet.base.errors import DataError, RunFailedError
from tfdet.base.files import add_path_to_errors
from tfdet.base.paths import cache_dir
from tfdet.base.untrusted import unreadable

_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_DATA = re.compile(r"^[^/]+\.data/(purelib|platlib)/")  # a folder of a wheel that is installed into site-packages
_MAX_MEMBERS = 200_000
_MAX_BYTES = 16 << 30  # of all libraries of a wheel; TensorFlow's are 1 to 2 GiB
_MAX_RATIO = 100  # of unpacked to packed size; TensorFlow's libraries have 2 to 8
_CHUNK = 1 << 20
# The errors of zipfile and its decompressors for a damaged file.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError, RuntimeError,
           ValueError, OverflowError)  # fmt: skip


@dataclass(frozen=True)
class Wheel:
    """A wheel file and its checksum."""

    path: Path
    sha256: str


@dataclass
class Unpacked:
    """The extracted libraries of a wheel.

    libraries: {path below site-packages: extracted file}.  faults: messages about damaged members.
    """

    libraries: dict[str, Path] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def unpack(wheel: Wheel) -> Unpacked:
    """Extract the shared libraries into the cache, where they can be mapped.

    A damaged member becomes a fault, and the others are extracted.  DataError if the file is not a complete zip.
    """
    with _open_zip(wheel.path) as archive:
        members = {
            installed_path(member.filename): member
            for member in archive.infolist()
            if not member.is_dir() and is_library(member.filename)
        }
        members = {name: members[name] for name in without_redundant_ptx(members)}
        _refuse_bomb(wheel.path, members)
        folder = cache_dir() / "libraries" / f"{wheel.path.stem}-{wheel.sha256[:12]}"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            return _extract(archive, wheel.path, members, folder)


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _DAMAGE as error:
        size = path.stat().st_size
        raise DataError(
            f"{path}: no zip archive, or cut short at offset {size}: {error}", "Bring the wheel again."
        ) from error
    except OSError as error:
        raise unreadable(path, error, "Bring the wheel again.") from error


def is_library(name: str) -> bool:
    """Return whether a file of this name may hold GPU code."""
    return _LIBRARY.search(name) is not None or name.endswith(SUFFIXES)


def installed_path(name: str) -> str:
    """Return the path below site-packages at which pip installs a member."""
    return _DATA.sub("", name)


def _refuse_bomb(path: Path, members: dict[str, zipfile.ZipInfo]) -> None:
    """Raise DataError if members have impossible sizes, or names that lead out of the folder."""
    advice = "This is no wheel that anybody built; nothing was unpacked."
    if len(members) > _MAX_MEMBERS:
        raise DataError(f"{path}: {len(members)} libraries in it", advice)
    for name, member in members.items():
        location = f"{path}: {member.filename} at offset {member.header_offset}"
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise DataError(f"{location}: its name leads out of the archive", advice)
        if member.file_size > _MAX_RATIO * max(member.compress_size, _CHUNK):
            raise DataError(f"{location}: {member.compress_size} bytes that unpack to {member.file_size}", advice)
    total = sum(member.file_size for member in members.values())
    if total > _MAX_BYTES:
        raise DataError(f"{path}: its libraries unpack to {total >> 30} GiB", advice)


def _extract(archive: zipfile.ZipFile, path: Path, members: dict[str, zipfile.ZipInfo], folder: Path) -> Unpacked:
    unpacked = Unpacked()
    missing = {n: m for n, m in members.items() if not _is_extracted(folder / n, m)}
    needed = sum(member.file_size for member in missing.values())
    if needed > shutil.disk_usage(folder).free:
        raise RunFailedError(
            f"{folder}: not enough disk space for {needed >> 20} MiB of libraries", "Free some space and run again."
        )
    with _progress(path.name, needed) as advance:
        for name, member in missing.items():
            try:
                _write_member(archive, member, folder / name, advance)
            except (*_DAMAGE, OSError) as error:
                if isinstance(error, OSError) and error.errno != errno.EINVAL:  # EINVAL: a negative offset in the zip
                    raise
                unpacked.faults.append(f"{path}: {member.filename} at offset {member.header_offset}: {error}")
    unpacked.libraries = {name: folder / name for name in sorted(members) if (folder / name).is_file()}
    return unpacked


def _is_extracted(file: Path, member: zipfile.ZipInfo) -> bool:
    return file.is_file() and file.stat().st_size == member.file_size


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; yield a function that advances it by a number of bytes."""
    columns = (TextColumn("unpacking {task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    hidden = not sys.stderr.isatty() or not total
    with Progress(*columns, console=console.err(), transient=True, disable=hidden) as bar:
        task = bar.add_task(name, total=total)
        yield lambda size: bar.advance(task, size)


def _write_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path, advance: Callable[[int], None]
) -> None:
    """Write the file atomically; zipfile never returns more bytes than the member declares."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    try:
        with archive.open(member) as source, add_path_to_errors(part), part.open("wb") as out:
            while chunk := source.read(_CHUNK):
                out.write(chunk)
                advance(len(chunk))
        if part.stat().st_size != member.file_size:
            raise zipfile.BadZipFile(f"{part.stat().st_size} bytes of {member.file_size}")
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)
