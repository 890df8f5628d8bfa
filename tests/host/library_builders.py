"""Build libraries like those that `tfdet audit` reads: an ELF file that contains fatbins of cubins and PTX."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import lz4.block
import zstandard

DATA = Path(__file__).parent / "audit_data"
"""loops.ptx and what ptxas of CUDA 12.4 makes of it; tests/host/audit/test_audit_oracle.py compares."""

ARCHS = (70, 80, 90)
PTX, ELF = 1, 2  # kinds of element
LZ4, ZSTD = 0x2000, 0x8000  # flags of an element: how it is compressed


def cubin(arch: int) -> bytes:
    """Return the cubin of loops.ptx for that architecture. Its 16 kernels are named after the expected verdict."""
    return (DATA / f"loops.sm_{arch}.cubin").read_bytes()


def ptx() -> bytes:
    """Return loops.ptx with the NUL that ends PTX in a fatbin."""
    return (DATA / "loops.ptx").read_bytes() + b"\0"


def element(kind: int, arch: int, payload: bytes, flags: int = 0, declared: int | None = None) -> bytes:
    """Return one element of a fatbin; `declared`: a false size after decompression."""
    stored = payload
    if flags & LZ4:
        stored = lz4.block.compress(payload, store_size=False)
    elif flags & ZSTD:
        stored = zstandard.ZstdCompressor().compress(payload)
    packed = len(stored) if flags else 0
    size = len(payload) if declared is None else declared
    stored += bytes(-len(stored) % 8)
    header = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(stored), packed, 0, 0, 0, arch, 0, 0, flags | 0x11, 0,
                         size if flags else 0)  # fmt: skip
    return header + stored


def fatbin(*elements: bytes) -> bytes:
    """Return a fatbin: its header, and the elements."""
    body = b"".join(elements)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def library(content: bytes, name: bytes = b".nv_fatbin", machine: int = 62) -> bytes:
    """Return a host library with one section of that content.  machine: that of its ELF header, 62 for x86-64."""
    names = b"\0" + name + b"\0.shstrtab\0"
    start = 64
    table = start + len(content) + len(names)
    table += -table % 8
    sections = [(0, 0, 0, 0), (1, 1, start, len(content)), (2 + len(name), 3, start + len(content), len(names))]
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, machine, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    data = header + content + names
    rows = [struct.pack("<IIQQQQIIQQ", *row[:2], 2, 0, *row[2:], 0, 0, 8, 0) for row in sections]
    return data + bytes(table - len(data)) + b"".join(rows)


def tensorflow_like_library(archs: Iterable[int] = ARCHS) -> bytes:
    """Return a library like TensorFlow's: machine code stored and compressed, PTX compressed."""
    elements = [element(ELF, arch, cubin(arch), flags) for arch, flags in zip(archs, (0, LZ4, ZSTD), strict=False)]
    return library(fatbin(element(PTX, 70, ptx(), LZ4), *elements[:1]) + bytes(8) + fatbin(*elements[1:]))
