"""Records by their checksums, read where they lie: there may be more than memory holds."""

from __future__ import annotations

import tempfile
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from tfdet.base.folders import is_there
from tfdet.store.fast_records import RecordLine, read_line
from tfdet.store.records import checksum_of

FindRecord = Callable[[str], bytes | None]  # the line of a record


class ChecksumIndex:
    """A number for each of many checksums, in 16 bytes: kept is how a checksum begins, and who asks compares the rest.

    Several of one checksum come in the order in which they were given.
    """

    def __init__(self, pairs: Iterable[tuple[bytes, int]]) -> None:
        begins, numbers = array("Q"), array("Q")
        for checksum, number in pairs:
            begins.append(_begin(checksum))
            numbers.append(number)
        order = array("Q", sorted(range(len(begins)), key=begins.__getitem__))
        self._begins = array("Q", map(begins.__getitem__, order))
        self._numbers = array("Q", map(numbers.__getitem__, order))

    def __call__(self, checksum: bytes) -> Sequence[int]:
        """Those of whatever begins so."""
        begin = _begin(checksum)
        return self._numbers[bisect_left(self._begins, begin) : bisect_right(self._begins, begin)]


def _begin(checksum: bytes) -> int:
    return int.from_bytes(checksum[:8], "big")


class RecordSpool:
    """Records on their way into the store, each once: they lie on disk, and are read as often as they are asked for."""

    def __init__(self, rows: Iterable[RecordLine]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115  (it ends with this object)
        self._places = ChecksumIndex(self._kept(rows))
        self._end = self._file.tell()

    def _kept(self, rows: Iterable[RecordLine]) -> Iterator[tuple[bytes, int]]:
        for row in rows:
            yield bytes.fromhex(row.record.checksum), self._file.tell()
            self._file.write(row.line.removesuffix(b"\n") + b"\n")

    def __iter__(self) -> Iterator[RecordLine]:
        place = 0
        while place < self._end:
            line = self._line(place)
            if self._first(checksum_of(line)) == place:
                yield RecordLine(read_line(line), line)
            place += len(line)

    def __call__(self, checksum: str) -> bytes | None:
        place = self._first(checksum)
        return None if place is None else self._line(place)

    def _first(self, checksum: str) -> int | None:
        places = self._places(bytes.fromhex(checksum))
        return next((place for place in places if checksum_of(self._line(place)) == checksum), None)

    def _line(self, place: int) -> bytes:
        self._file.seek(place)
        return self._file.readline()


def find_nothing(checksum: str) -> bytes | None:
    """There are no records."""
    return None


class RecordFiles:
    """Those of some files.  They are read when the first is asked for, and only their places are kept."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._open = ExitStack()

    def __enter__(self) -> RecordFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __call__(self, checksum: str) -> bytes | None:
        for place in self._places(bytes.fromhex(checksum)):
            source = self._sources[place & 0xFF]
            source.seek(place >> 8)
            if checksum_of(line := source.readline()) == checksum:
                return line
        return None

    @cached_property
    def _sources(self) -> list[BinaryIO]:
        return [self._open.enter_context(path.open("rb")) for path in self._paths if is_there(path)]

    @cached_property
    def _places(self) -> ChecksumIndex:
        """Where a line begins, and in which file."""
        return ChecksumIndex(self._lying())

    def _lying(self) -> Iterator[tuple[bytes, int]]:
        for number, source in enumerate(self._sources):
            at = 0
            for line in source:
                if len(text := checksum_of(line)) == 64 and not text.strip("0123456789abcdef"):
                    yield bytes.fromhex(text), at << 8 | number
                at += len(line)
