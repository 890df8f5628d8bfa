"""A cache of inferred cells: those of a device and environment, under a digest of everything that they depend on.

A cell has the verdict on one source of nondeterminism under one solution, which is inferred from files of records.

Reading 45,000 records takes seconds, and its result is the same until the records, the matrix, the suite or this code
change.  Cells of signed records are not cached, as signatures are verified at each read.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tfdet.base.errors import TfdetError
from tfdet.base.folders import is_folder, list_entries, walk_files
from tfdet.base.paths import Project, cache_dir
from tfdet.base.runtime_folder import package_folder
from tfdet.base.untrusted import sha256
from tfdet.verdicts.infer import CellKey, InferredCell

MAX_BYTES: Final = 64 << 20  # of all cache files
_CODE: Final = ("tfdet", "tfdet_common", "tfdet_probe")  # packages whose code the cells depend on
# Folders of the matrix that contain no rules.
_NO_RULES: Final = ("audits", "batches", "costs", "evidence", "signatures")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[CellKey, InferredCell]]).decode


@dataclass(frozen=True)
class CellCache:
    """The cache files in one folder.  rules: a digest of all that cells depend on, except the records."""

    folder: Path
    rules: str

    @classmethod
    def open(cls, project: Project, include_unsigned: bool) -> CellCache | None:
        """Open the cache; return None if the rules cannot be read.

        include_unsigned: whether all unsigned records count.
        """
        rules = [("", f"{sys.version} {msgspec.__version__} {include_unsigned}")]
        try:
            rules += ((name, sha256(path)) for name, path in sorted(_rule_files(project)))
            return cls(cache_dir() / "cells", _digest(rules))
        except (TfdetError, OSError, RuntimeError):
            return None

    def key(self, files: Iterable[Path]) -> str | None:
        """Return the digest under which the cells of these files of records are cached; None if one cannot be read."""
        try:
            return _digest([("", self.rules), *((f"{path.parent.name} {path.name}", sha256(path)) for path in files)])
        except (TfdetError, OSError):
            return None

    def get(self, key: str) -> dict[CellKey, InferredCell] | None:
        path = self.folder / key
        try:
            cells = dict(_decode(path.read_bytes()))
            os.utime(path)  # `trim` keeps the most recently used files
        except (OSError, msgspec.MsgspecError):
            return None
        return cells

    def put(self, key: str, cells: Mapping[CellKey, InferredCell]) -> None:
        """Cache cells, if the folder is writable; `trim` later removes what a killed process leaves."""
        part = self.folder / f"{key}.{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(_encode(list(cells.items())))
            part.replace(self.folder / key)
        except OSError:
            with suppress(OSError):
                part.unlink()

    def trim(self, max_bytes: int = MAX_BYTES) -> None:
        """Remove the least recently used files, until at most `max_bytes` remain."""
        try:
            with os.scandir(self.folder) as entries:
                files = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda file: -file[0].st_mtime)
            size = 0
            for stat, path in files:
                size += stat.st_size
                if size > max_bytes:
                    Path(path).unlink(missing_ok=True)
        except OSError:
            return


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"{len(text)} {text} " for part in parts for text in part)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()  # names of files may be no UTF-8


def _rule_files(project: Project) -> Iterator[tuple[str, Path]]:
    """Yield (name without the checkout's location, path) of files of the matrix, the suite, the keys and the code."""
    for folder in [project.suite(""), project.user_keys, *list_entries(project.matrix)]:
        if folder.parent == project.matrix and folder.name in _NO_RULES:
            continue
        yield from _named_files(folder.name, folder)
    # The table of the earlier hashes of cases.
    yield from (("earlier", path) for path in list_entries(project.evidence, "*.json"))
    for package in _CODE:
        # Only code: the package folder of an installed tfdet also contains records.
        yield from _named_files(package, package_folder(package), "*.py")


def _named_files(name: str, folder: Path, pattern: str = "*") -> Iterator[tuple[str, Path]]:
    files = walk_files(folder, pattern) if is_folder(folder) else [folder]
    for path in files:
        if "__pycache__" not in path.parts and path.is_file():
            yield f"{name} {path.relative_to(folder).as_posix()}", path
