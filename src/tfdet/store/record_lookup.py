"""Find records by their checksums in files on disk: there can be more records than fit into memory."""

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

FindRecord = Callable[[str], bytes | None]  # from a checksum to the line of its record, None if there is no such record


class ChecksumIndex:
    """Maps checksums to numbers in 16 bytes each, by storing only the first 8 bytes of a checksum.

    The caller must compare the rest of the checksum.  Numbers of equal checksums keep the order of `pairs`.
    """

    def __init__(self, pairs: Iterable[tuple[bytes, int]]) -> None:
        prefixes, numbers = array("Q"), array("Q")
        for checksum, number in pairs:
            prefixes.append(_prefix(checksum))
            numbers.append(number)
        order = array("Q", sorted(range(len(prefixes)), key=prefixes.__getitem__))
        self._prefixes = array("Q", map(prefixes.__getitem__, order))
        self._numbers = array("Q", map(numbers.__getitem__, order))

    def __call__(self, checksum: bytes) -> Sequence[int]:
        """Return the numbers of all checksums that begin with the same 8 bytes."""
        prefix = _prefix(checksum)
        return self._numbers[bisect_left(self._prefixes, prefix) : bisect_right(self._prefixes, prefix)]


def _prefix(checksum: bytes) -> int:
    return int.from_bytes(checksum[:8], "big")


class RecordSpool:
    """Records that are about to be added, each once, in a temporary file from which they can be read repeatedly."""

    def __init__(self, rows: Iterable[RecordLine]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115  (it ends with this object)
        self._offsets = ChecksumIndex(self._write_lines(rows))
        self._end = self._file.tell()

    def _write_lines(self, rows: Iterable[RecordLine]) -> Iterator[tuple[bytes, int]]:
        """Write each line to the file; yield (checksum, offset of its line)."""
        for row in rows:
            yield bytes.fromhex(row.record.checksum), self._file.tell()
            self._file.write(row.line.removesuffix(b"\n") + b"\n")

    def __iter__(self) -> Iterator[RecordLine]:
        offset = 0
        while offset < self._end:
            line = self._read_line(offset)
            if self._first_offset(checksum_of(line)) == offset:
                yield RecordLine(read_line(line), line)
            offset += len(line)

    def __call__(self, checksum: str) -> bytes | None:
        offset = self._first_offset(checksum)
        return None if offset is None else self._read_line(offset)

    def _first_offset(self, checksum: str) -> int | None:
        offsets = self._offsets(bytes.fromhex(checksum))
        return next((offset for offset in offsets if checksum_of(self._read_line(offset)) == checksum), None)

    def _read_line(self, offset: int) -> bytes:
        self._file.seek(offset)
        return self._file.readline()


def find_nothing(checksum: str) -> bytes | None:
    """Return None: a FindRecord for the case that there are no records."""
    return None


class RecordFiles:
    """Finds records in files.  The files are read at the first call, and only the offsets of their lines are kept."""

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
        """Maps a checksum to its place: the offset of its line << 8 | the number of its file."""
        return ChecksumIndex(self._checksums_and_places())

    def _checksums_and_places(self) -> Iterator[tuple[bytes, int]]:
        for number, source in enumerate(self._sources):
            offset = 0
            for line in source:
                if len(text := checksum_of(line)) == 64 and not text.strip("0123456789abcdef"):
                    yield bytes.fromhex(text), offset << 8 | number
                offset += len(line)
