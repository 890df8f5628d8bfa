"""The cells of a device and environment, kept in the cache folder under a digest of all that they follow from.

To read 45,000 records takes seconds, and gives the same until a byte of them, of the matrix, the suite or this code
changes.  What somebody signed is not kept: it is verified at each read.
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
from tfdet.base.folders import is_folder, listed, walked
from tfdet.base.paths import Project, cache_dir
from tfdet.base.runtime_folder import package_folder
from tfdet.base.untrusted import sha256
from tfdet.verdicts.infer import CellKey, InferredCell

MOST_BYTES: Final = 64 << 20  # of all that is kept
_CODE: Final = ("tfdet", "tfdet_common", "tfdet_probe")
_NO_RULES: Final = ("audits", "batches", "costs", "evidence", "signatures")  # folders of the matrix

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[CellKey, InferredCell]]).decode


@dataclass(frozen=True)
class CellCache:
    """rules: a digest of all but the records that cells follow from."""

    folder: Path
    rules: str

    @classmethod
    def open(cls, project: Project, unsigned: bool) -> CellCache | None:
        """unsigned: whether records count that nobody signed.  None where the rules cannot be read."""
        rules = [("", f"{sys.version} {msgspec.__version__} {unsigned}")]
        try:
            rules += ((name, sha256(path)) for name, path in sorted(_rule_files(project)))
            return cls(cache_dir() / "cells", _digest(rules))
        except (TfdetError, OSError, RuntimeError):
            return None

    def key(self, files: Iterable[Path]) -> str | None:
        """A digest for the cells that these files of records give; None where one cannot be read."""
        try:
            return _digest([("", self.rules), *((f"{path.parent.name} {path.name}", sha256(path)) for path in files)])
        except (TfdetError, OSError):
            return None

    def get(self, key: str) -> dict[CellKey, InferredCell] | None:
        path = self.folder / key
        try:
            found = dict(_decode(path.read_bytes()))
            os.utime(path)  # what was used last is kept longest
        except (OSError, msgspec.MsgspecError):
            return None
        return found

    def put(self, key: str, cells: Mapping[CellKey, InferredCell]) -> None:
        """Nothing is kept where nothing can be written.  What a killed process leaves goes with the oldest."""
        part = self.folder / f"{key}.{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(_encode(list(cells.items())))
            part.replace(self.folder / key)
        except OSError:
            with suppress(OSError):
                part.unlink()

    def trim(self, most: int = MOST_BYTES) -> None:
        """Remove what was not used for longest, until no more than `most` bytes lie there."""
        try:
            with os.scandir(self.folder) as there:
                found = sorted(((one.stat(), one.path) for one in there), key=lambda one: -one[0].st_mtime)
            size = 0
            for stat, path in found:
                size += stat.st_size
                if size > most:
                    Path(path).unlink(missing_ok=True)
        except OSError:
            return


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{len(one)} {one} " for part in parts for one in part).encode()).hexdigest()


def _rule_files(project: Project) -> Iterator[tuple[str, Path]]:
    """(a name that does not tell where the checkout lies, path) of the matrix, the suite, the keys and the code."""
    for folder in [project.suite(""), project.user_keys, *listed(project.matrix)]:
        if folder.parent == project.matrix and folder.name in _NO_RULES:
            continue
        yield from _named(folder.name, folder)
    yield from (("earlier", path) for path in listed(project.evidence, "*.json"))
    for package in _CODE:
        yield from _named(package, package_folder(package), "*.py")  # the records of an installed tfdet lie there, too


def _named(name: str, folder: Path, pattern: str = "*") -> Iterator[tuple[str, Path]]:
    files = walked(folder, pattern) if is_folder(folder) else [folder]
    for path in files:
        if "__pycache__" not in path.parts and path.is_file():
            yield f"{name} {path.relative_to(folder).as_posix()}", path
