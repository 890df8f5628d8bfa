"""Trimming of shared libraries: spans that the host does not need are blanked, that is, replaced by zeros.

Two things are blanked: GPU code for other compute capabilities (payloads of fatbin elements), and symbol and debug
tables, which no loader reads.  The layout stays, so no address changes; zeros compress well and take no disk space.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from tfdet.audit.elf import TYPE_SYMTAB, Elf, ElfError, read_elf
from tfdet.audit.fatbin import SECTION, Element, iter_elements
from tfdet.audit.model import ReadFault
from tfdet.base.errors import DataError

_KERNEL_STORE = b".cask_resource"
"""The section in which cuBLASLt and cuDNN keep newer kernels: fatbins with other data between them, which is kept."""

Span = tuple[int, int]  # first byte, and the one after the last


@dataclass(frozen=True)
class BlankedSpans:
    """The spans of a file that are blanked, in ascending order."""

    spans: tuple[Span, ...] = ()
    code: int = 0  # bytes of GPU code in the spans
    tables: int = 0  # bytes of tables in the spans


def find_blanked_spans(path: Path, capability: tuple[int, int] | None) -> BlankedSpans:
    """Return the spans of a library that a host with GPUs of this compute capability does not need.

    capability: None keeps all GPU code.  DataError if the GPU code cannot be read.
    """
    if path.stat().st_size == 0:
        return BlankedSpans()
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # unmapped with the last view of it
    return _find_in_elf(memoryview(mapped), path, capability)


def _find_in_elf(data: memoryview, path: Path, capability: tuple[int, int] | None) -> BlankedSpans:
    try:
        elf = read_elf(data)
    except ElfError:
        return BlankedSpans()  # not a library, such as a linker script
    code = list(_unneeded_code(elf, path, capability)) if capability else []
    tables = _unloaded_tables(elf)
    return BlankedSpans(tuple(sorted(code + tables)), sum(e - s for s, e in code), sum(e - s for s, e in tables))


def _unneeded_code(elf: Elf, path: Path, capability: tuple[int, int]) -> Iterator[Span]:
    """Yield the spans of the fatbin elements that a GPU of this compute capability does not load."""
    for row in elf.find(SECTION, _KERNEL_STORE):
        faults: list[ReadFault] = []
        section = elf.sections[row]
        start, size = int(section["offset"]), int(section["size"])
        for fatbin in _fatbins(list(iter_elements(elf.data, start, size, faults.append))):
            needed = _needed_elements(fatbin, capability)
            for element in fatbin:
                if element not in needed and element.size:
                    yield element.payload_offset, element.payload_offset + element.size
        if faults and elf.name(row) == SECTION:
            raise DataError(
                f"{path.name}: GPU code at offset {faults[0].offset} cannot be read: {faults[0].message}",
                "Bundle without --compute-capability: nothing is left out then.",
            )


def _fatbins(elements: list[Element]) -> Iterator[list[Element]]:
    """Group the elements by fatbin: adjacent elements are in the same one, since each fatbin begins with a header."""
    if not elements:
        return
    group = [elements[0]]
    for previous, element in pairwise(elements):
        if element.offset != previous.payload_offset + previous.size:
            yield group
            group = []
        group.append(element)
    yield group


def _needed_elements(fatbin: list[Element], capability: tuple[int, int]) -> list[Element]:
    """Return the elements that the driver would load: machine code of the same major version, else the newest PTX."""
    major, minor = capability
    limit = 10 * major + minor
    native = [e.arch for e in fatbin if e.kind == "elf" and e.arch // 10 == major and e.arch <= limit]
    portable = [e.arch for e in fatbin if e.kind == "ptx" and e.arch <= limit]
    kind, best = ("elf", max(native)) if native else ("ptx", max(portable, default=-1))
    return [e for e in fatbin if e.kind == "other" or (e.kind == kind and e.arch == best)]


def _unloaded_tables(elf: Elf) -> list[Span]:
    """Return the spans of the symbol table, its names and the debug information, which no loader maps."""
    rows = {int(row) for row in np.flatnonzero(elf.sections["type"] == TYPE_SYMTAB)}
    rows |= {int(elf.sections["link"][row]) for row in rows}
    rows |= {row for row in range(len(elf.sections)) if elf.name(row).startswith(b".debug_")}
    spans = []
    for row in sorted(rows):
        section = elf.sections[row]
        allocated = int(section["flags"]) & 0x2  # SHF_ALLOC: the loader maps it
        if elf.fits(row) and not allocated and section["size"]:
            spans.append((int(section["offset"]), int(section["offset"]) + int(section["size"])))
    return spans


def read_blanked(file: Path, start: int, size: int, spans: tuple[Span, ...]) -> bytearray:
    """Read `size` bytes of the file from `start` on, with zeros in place of the bytes in `spans`."""
    with file.open("rb") as source:
        source.seek(start)
        content = bytearray(source.read(size))
    for first, last in spans:
        low, high = max(first, start) - start, min(last, start + len(content)) - start
        if low < high:
            content[low:high] = bytes(high - low)
    return content
