"""Replace a folder atomically: at each moment either the old or the new one exists."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tfdet.base.folders import list_entries

_EXCHANGE: Final = 2  # RENAME_EXCHANGE of linux/fs.h
_AT_FDCWD: Final = -100


@contextmanager
def replace_folder(out: Path) -> Iterator[Path]:
    """Create a new folder that replaces `out` at the end. Leftovers of killed processes are removed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(out)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.part")
    temporary.mkdir()
    lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield temporary
        _swap_in(temporary, out)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after an exchange, this is the old folder
        os.close(lock)


def _swap_in(temporary: Path, out: Path) -> None:
    if not out.exists():
        temporary.rename(out)
    elif not _exchange(temporary, out):
        _merge(temporary, out)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names atomically by renameat2(2); return False if the system does not support it."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE) == 0:
        return True
    if (number := ctypes.get_errno()) in (errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(second))


def _merge(new: Path, out: Path) -> None:
    """Replace file by file: all new files are in place before any old file is removed."""
    new_names = {path.relative_to(new) for path in _walk(new)}
    for name in sorted(new_names):
        if (new / name).is_dir():
            if (out / name).is_file():
                (out / name).unlink()
            (out / name).mkdir(exist_ok=True)
        else:
            if (out / name).is_dir():
                shutil.rmtree(out / name)
            (new / name).replace(out / name)
    for path in sorted(_walk(out), reverse=True):
        if path.relative_to(out) not in new_names:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder; OSError if a folder cannot be read."""

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, files in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in (*folders, *files))


def _remove_abandoned(out: Path) -> None:
    """Remove the temporary folders of killed processes: no process holds their lock."""
    pattern = re.compile(rf"\.{re.escape(out.name)}\.\d+\.(part|old)")
    for path in list_entries(out.parent, f".{_escape_glob(out.name)}.*"):
        if pattern.fullmatch(path.name) and not path.is_symlink() and path.is_dir() and not _is_held(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        finally:
            os.close(descriptor)
    return True


def _escape_glob(name: str) -> str:
    """Escape a name for use in a glob pattern."""
    return re.sub(r"([*?[])", r"[\1]", name)
