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
        self._buckets: dict[int, _Bucket] = {}  # by the first byte, as sorting all at once takes 100 bytes for each
        for checksum, number in pairs:
            prefix = _prefix(checksum)
            bucket = self._buckets.get(prefix >> 56)
            if bucket is None:
                bucket = self._buckets[prefix >> 56] = (array("Q"), array("Q"))
            bucket[0].append(prefix)
            bucket[1].append(number)
        for first_byte, bucket in self._buckets.items():
            self._buckets[first_byte] = _sorted_bucket(*bucket)

    def __call__(self, checksum: bytes) -> Sequence[int]:
        """Return the numbers of all checksums that begin with the same 8 bytes."""
        prefix = _prefix(checksum)
        if (bucket := self._buckets.get(prefix >> 56)) is None:
            return ()
        prefixes, numbers = bucket
        return numbers[bisect_left(prefixes, prefix) : bisect_right(prefixes, prefix)]


_Bucket = tuple["array[int]", "array[int]"]  # prefixes in ascending order, and the number of each


def _sorted_bucket(prefixes: array[int], numbers: array[int]) -> _Bucket:
    order = sorted(range(len(prefixes)), key=prefixes.__getitem__)
    return array("Q", map(prefixes.__getitem__, order)), array("Q", map(numbers.__getitem__, order))


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
