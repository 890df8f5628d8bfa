"""Make shared libraries small without moving a byte: what the host does not need is read as zeros.

Two things go: GPU code for other compute capabilities (every other fatbin element's payload), and symbol and debug
tables, which no loader reads.  The layout stays, so no address changes; zeros compress to nothing and take no disk.
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
"""Where cuBLASLt and cuDNN keep newer kernels: fatbins with other data between them, which is left as it is."""

Span = tuple[int, int]  # first byte, and the one after the last


@dataclass(frozen=True)
class BlankedSpans:
    """What of a file is left out: ascending spans, and how many bytes are GPU code and how many are tables."""

    spans: tuple[Span, ...] = ()
    code: int = 0
    tables: int = 0


def find_blanked_spans(path: Path, capability: tuple[int, int] | None) -> BlankedSpans:
    """What a host with GPUs of this compute capability does not need of a library (None: keep all GPU code).

    DataError where the GPU code cannot be told apart: a guess would leave out what is needed.
    """
    if path.stat().st_size == 0:
        return BlankedSpans()
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # goes with the last view of it
    return _blanks(memoryview(mapped), path, capability)


def _blanks(data: memoryview, path: Path, capability: tuple[int, int] | None) -> BlankedSpans:
    try:
        elf = read_elf(data)
    except ElfError:
        return BlankedSpans()  # a linker script, or nothing that a loader reads
    code = list(_foreign_code(elf, path, capability)) if capability else []
    unread = _tables(elf)
    return BlankedSpans(tuple(sorted(code + unread)), sum(e - s for s, e in code), sum(e - s for s, e in unread))


def _foreign_code(elf: Elf, path: Path, capability: tuple[int, int]) -> Iterator[Span]:
    for row in elf.find(SECTION, _KERNEL_STORE):
        faults: list[ReadFault] = []
        section = elf.sections[row]
        start, size = int(section["offset"]), int(section["size"])
        for fatbin in _fatbins(list(iter_elements(elf.data, start, size, faults.append))):
            wanted = _wanted(fatbin, capability)
            for element in fatbin:
                if element not in wanted and element.size:
                    yield element.payload_offset, element.payload_offset + element.size
        if faults and elf.name(row) == SECTION:
            raise DataError(
                f"{path.name}: GPU code at offset {faults[0].offset} cannot be read: {faults[0].message}",
                "Bundle without --compute-capability: nothing is left out then.",
            )


def _fatbins(elements: list[Element]) -> Iterator[list[Element]]:
    """Elements that stand side by side are one fatbin: between two fatbins there is a header."""
    if not elements:
        return
    group = [elements[0]]
    for before, element in pairwise(elements):
        if element.offset != before.payload_offset + before.size:
            yield group
            group = []
        group.append(element)
    yield group


def _wanted(fatbin: list[Element], capability: tuple[int, int]) -> list[Element]:
    """What the driver would choose there: machine code of the same major version, else the newest PTX."""
    major, minor = capability
    limit = 10 * major + minor
    native = [e.arch for e in fatbin if e.kind == "elf" and e.arch // 10 == major and e.arch <= limit]
    portable = [e.arch for e in fatbin if e.kind == "ptx" and e.arch <= limit]
    kind, best = ("elf", max(native)) if native else ("ptx", max(portable, default=-1))
    return [e for e in fatbin if e.kind == "other" or (e.kind == kind and e.arch == best)]


def _tables(elf: Elf) -> list[Span]:
    """The symbol table with its names, and debug information: none of it is ever loaded."""
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
    """`size` bytes from `start`, those in `spans` as zeros."""
    with file.open("rb") as source:
        source.seek(start)
        content = bytearray(source.read(size))
    for first, last in spans:
        low, high = max(first, start) - start, min(last, start + len(content)) - start
        if low < high:
            content[low:high] = bytes(high - low)
    return content
