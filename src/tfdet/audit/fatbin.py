"""The fatbin container: where in a library each architecture's machine code and PTX lie.

A section `.nv_fatbin` holds containers one after another.  A container is a header of 16 bytes (magic, version, header
size, bytes that follow) and elements; an element is a header of 64 bytes or more and a payload, padded to 8 bytes:

    0  u16 kind (1 PTX, 2 ELF)    16 u32 compressed bytes, 0 if stored    40 u64 flags
    4  u32 header size            28 u32 architecture                     56 u64 bytes after decompression
    8  u64 payload, padded

There is no public description; this was read from files, and the tests hold it against NVIDIA's own tools.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import lz4.block
import zstandard

from tfdet.audit.model import ReadFault

SECTION = b".nv_fatbin"
"""What the driver loads.  `__nv_relfatbin` is not read: it is the device linker's input, whose result is in here."""

MAGIC = 0xBA55ED50
MAGIC_BYTES = struct.pack("<I", MAGIC)
MAX_PAYLOAD = 512 << 20
"""Bytes one element may decompress to; the largest of TensorFlow's have 30 MB."""

_CONTAINER = struct.Struct("<IHHQ")
_ELEMENT = struct.Struct("<HHIQIIHHIIIQQQ")
_Kind = Literal["ptx", "elf", "other"]
_KINDS: dict[int, _Kind] = {1: "ptx", 2: "elf"}
_ARCHS = range(10, 1000)  # the last digit is the minor version
_FLAG_LZ4 = 0x2000
_FLAG_ZSTD = 0x8000
_LZ4_MAX = 255  # no LZ4 block grows more than so many times
_ZSTD_WINDOW = 128 << 20
_CHUNK = 1 << 20


class PayloadError(ValueError):
    """A payload that cannot be read."""


@dataclass(frozen=True)
class Element:
    """One architecture's code.  All offsets are bytes from the start of the file."""

    offset: int  # of the element's header
    header_size: int
    size: int  # of the payload, padding included: the next element starts behind it
    compressed_size: int  # 0 where stored as it is
    uncompressed_size: int  # as declared; 0 where stored as it is
    arch: int  # 70
    kind: _Kind
    flags: int

    @property
    def payload_offset(self) -> int:
        return self.offset + self.header_size

    @property
    def stored_size(self) -> int:
        """Bytes of the payload without padding where that is known."""
        return self.compressed_size or self.size

    @property
    def compression(self) -> Literal["none", "lz4", "zstd", "unknown"]:
        if self.flags & _FLAG_ZSTD:
            return "zstd"
        if self.flags & _FLAG_LZ4:
            return "lz4"
        return "unknown" if self.compressed_size else "none"


def iter_elements(data: memoryview, start: int, size: int, report: Callable[[ReadFault], None]) -> Iterator[Element]:
    """The elements of the fatbins in `data[start : start + size]`, in file order; what is damaged goes to `report`.

    After damage, reading goes on at the next container.
    """
    end = start + size
    position = start
    while position < end:
        if end - position < _CONTAINER.size:
            _report_trailing(data, position, end, report)
            return
        magic, _, header, length = _CONTAINER.unpack_from(data, position)
        if magic != MAGIC:
            following = _next_container(data, position + 1, end)
            _report_trailing(data, position, following, report)
            position = following
        elif header < _CONTAINER.size or position + header + length > end:
            report(ReadFault(position, f"fatbin of {header} + {length} bytes does not fit its section"))
            yield from _elements(data, position + _CONTAINER.size, end, report)
            position = _next_container(data, position + 4, end)
        else:
            yield from _elements(data, position + header, position + header + length, report)
            position += header + length


def read_payload(data: memoryview, element: Element) -> memoryview:
    """The element's ELF file or PTX text, a view of `data` where it is not compressed; PayloadError if damaged."""
    stored = data[element.payload_offset : element.payload_offset + element.stored_size]
    if element.compression == "none":
        return stored
    if element.compression == "unknown":
        raise PayloadError(f"unknown compression (flags {element.flags:#x})")
    _check_declared(element)
    if element.compression == "lz4":
        return _unlz4(stored, element.uncompressed_size)
    return _unzstd(stored, element.uncompressed_size)


def _elements(data: memoryview, position: int, end: int, report: Callable[[ReadFault], None]) -> Iterator[Element]:
    while position < end:
        if end - position < _ELEMENT.size:
            _report_trailing(data, position, end, report)
            return
        kind, _, header, size, compressed, _, _, _, arch, _, _, flags, _, uncompressed = _ELEMENT.unpack_from(
            data, position
        )
        if data[position : position + 4] == MAGIC_BYTES:
            return  # the container before it was damaged, and here begins the next
        if header < _ELEMENT.size or compressed > size or position + header + size > end:
            report(ReadFault(position, f"fatbin element of {header} + {size} bytes does not fit its container"))
            return
        if kind not in _KINDS:
            report(ReadFault(position, f"fatbin element of unknown kind {kind}"))
        if arch not in _ARCHS:
            report(ReadFault(position, f"fatbin element for architecture {arch}, which there is not"))
        known: _Kind = _KINDS.get(kind, "other") if arch in _ARCHS else "other"
        yield Element(position, header, size, compressed, uncompressed, arch, known, flags)
        position += header + size


def _next_container(data: memoryview, start: int, end: int) -> int:
    """Where the next container starts, at or after `start`; `end` if none does."""
    for position, chunk in _chunks(data, start, end, overlap=len(MAGIC_BYTES) - 1):
        found = bytes(chunk).find(MAGIC_BYTES)
        if found >= 0:
            return position + found
    return end


def _chunks(data: memoryview, start: int, end: int, overlap: int = 0) -> Iterator[tuple[int, memoryview]]:
    """(position, view) of pieces small enough to be copied."""
    for position in range(start, end, _CHUNK):
        yield position, data[position : min(end, position + _CHUNK + overlap)]


def _report_trailing(data: memoryview, start: int, end: int, report: Callable[[ReadFault], None]) -> None:
    """Zeros between containers are padding, all else is damage."""
    if any(bytes(chunk).strip(b"\0") for _, chunk in _chunks(data, start, end)):
        report(ReadFault(start, f"{end - start} bytes that are no fatbin"))


def _check_declared(element: Element) -> None:
    """Refuse sizes that no honest payload declares, before memory is taken."""
    declared = element.uncompressed_size
    if declared > MAX_PAYLOAD:
        raise PayloadError(f"declares {declared} bytes, more than the {MAX_PAYLOAD} allowed")
    if element.compression == "lz4" and declared > _LZ4_MAX * (element.stored_size + 1):
        raise PayloadError(f"declares {declared} bytes from {element.stored_size} of LZ4, which cannot be")


def _unlz4(stored: memoryview, declared: int) -> memoryview:
    try:
        payload = lz4.block.decompress(stored, uncompressed_size=declared)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise PayloadError(f"damaged LZ4 data: {error}") from error
    return _check_size(payload, declared)


def _unzstd(stored: memoryview, declared: int) -> memoryview:
    """A frame may declare another size than the fatbin does: read no more than what was promised, plus one byte."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    try:
        with decompressor.stream_reader(stored) as reader:
            payload = reader.read(declared + 1)
    except zstandard.ZstdError as error:
        raise PayloadError(f"damaged zstd data: {error}") from error
    return _check_size(payload, declared)


def _check_size(payload: bytes, declared: int) -> memoryview:
    if len(payload) != declared:
        raise PayloadError(f"declares {declared} bytes, holds {len(payload)}{' or more' * (len(payload) > declared)}")
    return memoryview(payload)
