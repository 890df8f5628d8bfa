"""Listing of folders: a missing folder is empty, but an unreadable one raises DataError.

`Path.glob`, `exists` and `is_dir` do not distinguish the two.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tfdet.base.errors import DataError
from tfdet.base.untrusted import unreadable

_LINK = "Remove the link, or bring back what it led to."


def is_there(path: Path) -> bool:
    """Return whether the path exists; DataError if that cannot be determined, or for a broken symbolic link."""
    try:
        path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise unreadable(path, OSError(errno.ENOENT, "a symbolic link to nothing"), _LINK) from None
        return False
    except OSError as error:
        raise unreadable(path, error, "") from error
    return True


def is_folder(path: Path) -> bool:
    return is_there(path) and stat.S_ISDIR(path.stat().st_mode)


def list_entries(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the matching entries, sorted; `*/*.jsonl` has a pattern for each level; [] if the folder is missing."""
    first, _, rest = pattern.partition("/")
    paths = [path for path in _entries(folder) if fnmatchcase(path.name, first)]
    if not rest:
        return paths
    return [path for subfolder in paths if is_folder(subfolder) for path in list_entries(subfolder, rest)]


def list_in_subfolders(folder: Path, pattern: str, allowed_files: Container[str] = ()) -> list[Path]:
    """Return the matching entries of the subfolders; DataError if `folder` itself contains a file.

    allowed_files: names of files that `folder` may contain, besides hidden files.
    """
    for path in _entries(folder):
        if not (path.name.startswith(".") or path.name in allowed_files or is_folder(path)):
            advice = "Bring the folder back (git checkout), or move the file away."
            raise DataError(f"{path}: a file, where a folder of a device belongs", advice)
    return list_entries(folder, f"*/{pattern}")


def walk_files(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """Yield the matching files at any depth below the folder."""
    for path in _entries(folder):
        if is_folder(path):
            yield from walk_files(path, pattern)
        elif fnmatchcase(path.name, pattern):
            yield path


def _entries(folder: Path) -> list[Path]:
    if not is_there(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries)
    except OSError as error:
        raise unreadable(folder, error, "") from error
