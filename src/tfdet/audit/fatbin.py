"""Reader of fatbin containers, which hold a library's machine code and PTX for each GPU architecture.

A section `.nv_fatbin` holds containers one after another.  A container is a header of 16 bytes (magic, version, header
size, bytes that follow) and elements; an element is a header of 64 bytes or more and a payload, padded to 8 bytes:

    0  u16 kind (1 PTX, 2 ELF)    16 u32 compressed bytes, 0 if stored    40 u64 flags
    4  u32 header size            28 u32 architecture                     56 u64 bytes after decompression
    8  u64 payload, padded

NVIDIA does not document this format.  It was derived from files, and the tests compare the reader with NVIDIA's tools.
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
"""The section that the driver loads.  `__nv_relfatbin` is not read: the device linker's output is in this section."""

MAGIC = 0xBA55ED50
MAGIC_BYTES = struct.pack("<I", MAGIC)
MAX_PAYLOAD = 512 << 20
"""Bytes that one element may decompress to; the largest elements of TensorFlow have 30 MB."""

_CONTAINER = struct.Struct("<IHHQ")
_ELEMENT = struct.Struct("<HHIQIIHHIIIQQQ")
_Kind = Literal["ptx", "elf", "other"]
_KINDS: dict[int, _Kind] = {1: "ptx", 2: "elf"}
_ARCHS = range(10, 1000)  # the last digit is the minor version
_FLAG_LZ4 = 0x2000
_FLAG_ZSTD = 0x8000
_LZ4_MAX = 255  # the largest ratio of decompressed to compressed bytes in LZ4
_ZSTD_WINDOW = 128 << 20
_CHUNK = 1 << 20


class PayloadError(ValueError):
    """A payload that cannot be read."""


@dataclass(frozen=True)
class Element:
    """One architecture's code.  All offsets are bytes from the start of the file."""

    offset: int  # of the element's header
    header_size: int
    size: int  # of the payload with its padding; the next element follows
    compressed_size: int  # 0 if not compressed
    uncompressed_size: int  # as the header declares; 0 if not compressed
    arch: int  # such as 70
    kind: _Kind
    flags: int

    @property
    def payload_offset(self) -> int:
        return self.offset + self.header_size

    @property
    def stored_size(self) -> int:
        """Return the number of the payload's bytes: without padding if it is compressed, else with it."""
        return self.compressed_size or self.size

    @property
    def compression(self) -> Literal["none", "lz4", "zstd", "unknown"]:
        if self.flags & _FLAG_ZSTD:
            return "zstd"
        if self.flags & _FLAG_LZ4:
            return "lz4"
        return "unknown" if self.compressed_size else "none"


def iter_elements(data: memoryview, start: int, size: int, report: Callable[[ReadFault], None]) -> Iterator[Element]:
    """Yield the elements of the fatbins in `data[start : start + size]`, in file order.

    Each damaged part is passed to `report`; reading then continues at the next container.
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
            yield from _container_elements(data, position + _CONTAINER.size, end, report)
            position = _next_container(data, position + 4, end)
        else:
            yield from _container_elements(data, position + header, position + header + length, report)
            position += header + length


def read_payload(data: memoryview, element: Element) -> memoryview:
    """Return the element's ELF file or PTX text, as a view of `data` if not compressed; PayloadError if damaged."""
    stored = data[element.payload_offset : element.payload_offset + element.stored_size]
    if element.compression == "none":
        return stored
    if element.compression == "unknown":
        raise PayloadError(f"unknown compression (flags {element.flags:#x})")
    _check_declared(element)
    if element.compression == "lz4":
        return _unlz4(stored, element.uncompressed_size)
    return _unzstd(stored, element.uncompressed_size)


def _container_elements(
    data: memoryview, position: int, end: int, report: Callable[[ReadFault], None]
) -> Iterator[Element]:
    while position < end:
        if end - position < _ELEMENT.size:
            _report_trailing(data, position, end, report)
            return
        kind, _, header, size, compressed, _, _, _, arch, _, _, flags, _, uncompressed = _ELEMENT.unpack_from(
            data, position
        )
        if data[position : position + 4] == MAGIC_BYTES:
            return  # the next container: this one is shorter than its header declares
        if header < _ELEMENT.size or compressed > size or position + header + size > end:
            report(ReadFault(position, f"fatbin element of {header} + {size} bytes does not fit its container"))
            return
        if kind not in _KINDS:
            report(ReadFault(position, f"fatbin element of unknown kind {kind}"))
        if arch not in _ARCHS:
            report(ReadFault(position, f"fatbin element for architecture {arch}, which there is not"))
        element_kind: _Kind = _KINDS.get(kind, "other") if arch in _ARCHS else "other"
        yield Element(position, header, size, compressed, uncompressed, arch, element_kind, flags)
        position += header + size


def _next_container(data: memoryview, start: int, end: int) -> int:
    """Return the offset of the next container at or after `start`, or `end` if there is none."""
    for position, chunk in _chunks(data, start, end, overlap=len(MAGIC_BYTES) - 1):
        index = bytes(chunk).find(MAGIC_BYTES)
        if index >= 0:
            return position + index
    return end


def _chunks(data: memoryview, start: int, end: int, overlap: int = 0) -> Iterator[tuple[int, memoryview]]:
    """Yield (position, view) of pieces small enough to be copied, each with `overlap` bytes of the next."""
    for position in range(start, end, _CHUNK):
        yield position, data[position : min(end, position + _CHUNK + overlap)]


def _report_trailing(data: memoryview, start: int, end: int, report: Callable[[ReadFault], None]) -> None:
    """Report bytes between containers as damage, unless they are zeros: those are padding."""
    if any(bytes(chunk).strip(b"\0") for _, chunk in _chunks(data, start, end)):
        report(ReadFault(start, f"{end - start} bytes that are no fatbin"))


def _check_declared(element: Element) -> None:
    """Raise PayloadError for an impossible declared size, before memory is allocated for it."""
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
    """Decompress at most `declared` + 1 bytes: a zstd frame may declare another size than the fatbin does."""
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
