"""What lies in a folder: one that is not there holds nothing, one that cannot be read is told of.

`Path.glob`, `exists` and `is_dir` take both for the same.
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
    """False where nothing is; DataError where that cannot be told."""
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


def listed(folder: Path, pattern: str = "*") -> list[Path]:
    """Sorted, what is called so: a pattern for each level, as `*/*.jsonl`; none where there is no such folder."""
    first, _, rest = pattern.partition("/")
    found = [path for path in _entries(folder) if fnmatchcase(path.name, first)]
    if not rest:
        return found
    return [path for inner in found if is_folder(inner) for path in listed(inner, rest)]


def in_folders(folder: Path, pattern: str, beside: Container[str] = ()) -> list[Path]:
    """What is called so in the folders that lie there; DataError for a file that may have taken the place of one.

    beside: files that belong there.  Hidden ones may be there, too.
    """
    for path in _entries(folder):
        if not (path.name.startswith(".") or path.name in beside or is_folder(path)):
            advice = "Bring the folder back (git checkout), or move the file away."
            raise DataError(f"{path}: a file, where a folder of a device belongs", advice)
    return listed(folder, f"*/{pattern}")


def walked(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """The same at any depth; a folder is not told of."""
    for path in _entries(folder):
        if is_folder(path):
            yield from walked(path, pattern)
        elif fnmatchcase(path.name, pattern):
            yield path


def _entries(folder: Path) -> list[Path]:
    if not is_there(folder):
        return []
    try:
        with os.scandir(folder) as there:
            return sorted(Path(entry.path) for entry in there)
    except OSError as error:
        raise unreadable(folder, error, "") from error
