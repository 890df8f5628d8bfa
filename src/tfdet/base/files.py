"""Atomic writes of one file, and of several files as one transaction."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tfdet.base.errors import DataError, TfdetError, UsageError, from_os_error
from tfdet.base.folders import is_folder, is_there, list_entries
from tfdet.base.untrusted import read_text

PART = ".part"


@contextmanager
def add_path_to_errors(path: Path) -> Iterator[None]:
    """Add `path` to an OSError that has no path, such as one from a write."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def require_writable(path: Path, option: str) -> None:
    """Raise UsageError if `path` cannot be written. Call it before the work whose result goes there."""
    try:
        if is_there(path) and not path.is_file():
            kind = "is a folder" if path.is_dir() else "not a regular file"
            raise UsageError(f"{option} {path}: {kind}", "Name a file in your folder.")
        probe = path.with_name(f"{path.name}.{os.getpid()}.part")  # fails for a folder without a name, such as "/"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        probe.touch(exist_ok=False)
        probe.unlink()
    except DataError as error:
        raise UsageError(f"{option} {error.cause}", error.advice) from error
    except OSError as error:
        converted = from_os_error(error, "Name a file in your folder.")
        raise UsageError(f"{option} {path}: {converted.cause}", converted.advice) from error


def write_atomic(path: Path, text: str, *, unchanged: str = "") -> None:
    """Replace a file atomically: after a kill or with a full disk, the old file remains. Create a missing folder.

    unchanged: a clause that says what remains unchanged if the write fails, for the advice of the TfdetError.
    """
    try:
        if is_there(path) and not path.is_file():
            raise UsageError(f"{path}: not a regular file", "Name another file; a device is not replaced.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked_file(part_path(path)) as out:
            try:
                out.write(text.encode("utf-8", "backslashreplace"))
                sync(out)
                part_path(path).replace(path)
            except BaseException:
                part_path(path).unlink(missing_ok=True)
                raise
        sync_folder(path.parent)
    except OSError as error:
        raise write_error(path, error, unchanged) from error


def write_error(path: Path, error: OSError, unchanged: str = "") -> TfdetError:
    """Return the error of a failed write. unchanged: as in `write_atomic`."""
    converted = from_os_error(error, path=path if error.filename in (None, str(part_path(path))) else None)
    sentence = unchanged and f"{unchanged[0].upper()}{unchanged[1:]}."
    converted.advice = " ".join(filter(None, [converted.advice, sentence]))
    return converted


@contextmanager
def _locked_file(part: Path) -> Iterator[BinaryIO]:
    """Open an empty file that no other process writes; reuse the file of a killed process."""
    while True:
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "wb") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            if _is_same(out, part):  # false if another process has renamed its file meanwhile
                out.truncate(0)
                yield out
                return


def _is_same(out: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(out.fileno()), path.stat())
    except FileNotFoundError:
        return False


def part_path(path: Path) -> Path:
    """Return the path that a file is written to before it is renamed into place."""
    return path.with_name(path.name + PART)


def sync(out: BinaryIO) -> None:
    out.flush()
    os.fsync(out.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that they survive a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems do not support it
            raise
    finally:
        os.close(handle)


class Transaction:
    """A replacement of several files at once: it is committed as soon as the file with their list exists.

    The caller must hold a lock, and call `recover` first.
    """

    def __init__(self, listing: Path, folders: Sequence[Path]) -> None:
        """Create an empty transaction.

        listing: the path of the list. folders: those whose subfolders contain the files, and the folder of the list.
        """
        self._list, self._folders = listing, folders
        self._root = listing.parents[1]
        self._new: list[Path] = []

    @property
    def is_pending(self) -> bool:
        return is_there(self._list)

    @contextmanager
    def new(self, path: Path) -> Iterator[BinaryIO]:
        """Open the future content of the file `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._new.append(path)
        with part_path(path).open("wb") as out:
            yield out
            sync(out)

    def commit(self) -> None:
        """Move all new files into place; after an OSError, none of them is."""
        if not self._new:
            return
        for folder in sorted({folder for path in self._new for folder in (path.parent, path.parents[1], self._root)}):
            sync_folder(folder)
        with part_path(self._list).open("wb") as out:
            out.write(json.dumps([str(path.relative_to(self._root)) for path in self._new]).encode("ascii"))
            sync(out)
        part_path(self._list).replace(self._list)  # commits: `recover` completes the rest even after a crash
        self.recover()

    def recover(self) -> None:
        """Complete a committed transaction, or remove the files of an uncommitted one; DataError: damaged list."""
        if self.is_pending:
            sync_folder(self._list.parent)
            paths = self._listed()
            for path in paths:
                if is_there(part_path(path)):
                    part_path(path).replace(path)
            for folder in sorted({path.parent for path in paths}):
                sync_folder(folder)
            self._list.unlink()
        self._new = []
        for leftover in self.leftovers():
            leftover.unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """Return the temporary files of an active or aborted transaction."""
        paths = [
            path
            for folder in self._folders
            for pattern in ("*", "*/*")
            for path in list_entries(folder, pattern + PART)
        ]
        return [path for path in paths if not is_folder(path)]

    def _listed(self) -> list[Path]:
        """Read the list of files, an untrusted input: raise DataError for paths outside of the folders."""
        try:
            names = json.loads(read_text(self._list))
            paths = [self._root / name for name in names]
            if all(path.parents[1] in self._folders and ".." not in path.parts for path in paths):
                return paths
        except (ValueError, TypeError, IndexError, RecursionError):
            pass
        raise DataError(f"{self._list}: not a list of files of the store", "Remove it, then run tfdet status --check.")
