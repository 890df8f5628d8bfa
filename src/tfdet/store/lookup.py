"""Records by their checksums, read where they lie: there may be more than memory holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from tfdet.base.folders import is_there
from tfdet.store.glance import Row, read_line
from tfdet.store.records import checksum_of

Find = Callable[[str], bytes | None]  # the line of a record


class Spool:
    """Records on their way into the store: they lie on disk, and are read again as often as they are asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115  (it ends with this object)
        self._places: dict[bytes, int] = {}
        for row in rows:
            self._places.setdefault(bytes.fromhex(row.glance.checksum), self._file.tell())
            self._file.write(row.line.removesuffix(b"\n") + b"\n")

    def __iter__(self) -> Iterator[Row]:
        return (Row(read_line(line), line) for line in map(self._line, self._places.values()))

    def __call__(self, checksum: str) -> bytes | None:
        place = self._places.get(bytes.fromhex(checksum))
        return None if place is None else self._line(place)

    def _line(self, place: int) -> bytes:
        self._file.seek(place)
        return self._file.readline()


def nothing(checksum: str) -> bytes | None:
    """There are no records."""
    return None


class Lines:
    """Those of some files.  They are read when the first is asked for, and only their places are kept."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._open = ExitStack()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __call__(self, checksum: str) -> bytes | None:
        place = self._places.get(bytes.fromhex(checksum))
        if place is None:
            return None
        source = self._sources[place & 0xFF]
        source.seek(place >> 8)
        return source.readline()

    @cached_property
    def _sources(self) -> list[BinaryIO]:
        return [self._open.enter_context(path.open("rb")) for path in self._paths if is_there(path)]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        """Where a line begins, and in which file."""
        found: dict[bytes, int] = {}
        for number, source in enumerate(self._sources):
            at = 0
            for line in source:
                if len(text := checksum_of(line)) == 64 and not text.strip("0123456789abcdef"):
                    found.setdefault(bytes.fromhex(text), at << 8 | number)
                at += len(line)
        return found
