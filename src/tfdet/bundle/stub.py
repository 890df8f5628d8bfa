"""Stubs for libraries and modules that a bundle leaves out: they load, and any use of their functions is an error."""

from __future__ import annotations

import struct

_HEADER, _SEGMENT, _ENTRY, _SYMBOL = 64, 56, 16, 24
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_DT_NULL, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 0, 4, 5, 6, 10, 11, 14
_READ_WRITE = 6
_PAGE = 0x1000


def shared_library(soname: str) -> bytes:
    """Return an x86-64 shared library with this soname and no symbols.

    This writes the ELF-64 file without a compiler.  One segment contains everything; it is writable because glibc
    relocates the dynamic table in place.  The PT_GNU_STACK segment declares a stack that is not executable.
    """
    names = b"\0" + soname.encode("ascii") + b"\0"
    hash_table = struct.pack("<4I", 1, 1, 0, 0)  # one bucket, one symbol (the empty one), no chain
    dynamic_at = _HEADER + 3 * _SEGMENT
    names_at = dynamic_at + 7 * _ENTRY
    symbols_at = _aligned(names_at + len(names))
    hash_at = symbols_at + _SYMBOL
    size = hash_at + len(hash_table)
    dynamic = [(_DT_SONAME, 1), (_DT_HASH, hash_at), (_DT_STRTAB, names_at), (_DT_STRSZ, len(names)),
               (_DT_SYMTAB, symbols_at), (_DT_SYMENT, _SYMBOL), (_DT_NULL, 0)]  # fmt: skip
    image = bytearray(size)
    image[:_HEADER] = _file_header()
    segments = [
        _segment(_PT_LOAD, 0, size, _PAGE),
        _segment(_PT_DYNAMIC, dynamic_at, 7 * _ENTRY, 8),
        _segment(_PT_GNU_STACK, 0, 0, 16),
    ]
    image[_HEADER:dynamic_at] = b"".join(segments)
    image[dynamic_at:names_at] = b"".join(struct.pack("<QQ", tag, value) for tag, value in dynamic)
    image[names_at : names_at + len(names)] = names
    image[hash_at:] = hash_table
    return bytes(image)


def _aligned(offset: int) -> int:
    return -(-offset // 8) * 8


def _file_header() -> bytes:
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, version 1
    shared_object, x86_64, version = 3, 62, 1
    return ident + struct.pack("<HHIQQQIHHHHHH", shared_object, x86_64, version, 0, _HEADER, 0, 0, _HEADER, _SEGMENT, 3,
                               0, 0, 0)  # fmt: skip


def _segment(kind: int, offset: int, size: int, align: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, _READ_WRITE, offset, offset, offset, size, size, align)


def python_module(name: str) -> bytes:
    """Return a Python module in place of an extension: any access to its attributes raises a RuntimeError."""
    return (
        f'"""Stands in for {name}, which this bundle leaves out."""\n\n\n'
        "def __getattr__(attribute):\n"
        '    if attribute.startswith("__"):\n'
        "        raise AttributeError(attribute)\n"
        f'    raise RuntimeError("{name} is left out of this bundle")\n'
    ).encode("ascii")
