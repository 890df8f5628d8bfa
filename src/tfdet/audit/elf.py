"""Section tables of 64-bit little-endian ELF files: host libraries and the cubins inside them.

A TensorFlow library holds some 10^5 sections of cubins, too many for a Python object each: NumPy reads a whole table.
Layout: ELF-64 Object File Format, version 1.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HEADER_SIZE = 64
MACHINE_X86_64 = 62
MACHINE_CUDA = 190
TYPE_SYMTAB = 2
TYPE_NOBITS = 8
FLAG_EXEC = 0x4
_EXTENDED_INDEX = 0xFFFF  # SHN_XINDEX: the real value is in section 0

_FILE = np.dtype([("magic", "S4"), ("class", "u1"), ("data", "u1"), ("rest", "S10"), ("type", "<u2"),
                  ("machine", "<u2"), ("version", "<u4"), ("entry", "<u8"), ("phoff", "<u8"), ("shoff", "<u8"),
                  ("flags", "<u4"), ("ehsize", "<u2"), ("phentsize", "<u2"), ("phnum", "<u2"),
                  ("shentsize", "<u2"), ("shnum", "<u2"), ("shstrndx", "<u2")])  # fmt: skip
_SECTION = np.dtype([("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"),
                     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"),
                     ("entsize", "<u8")])  # fmt: skip
_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
                    ("size", "<u8")])  # fmt: skip


class ElfError(ValueError):
    """An invalid ELF file. offset: of the fault, in bytes from the start."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Elf:
    """One ELF file's section table: structured arrays, one row per section."""

    data: memoryview
    machine: int
    flags: int
    sections: NDArray[np.void]
    names: bytes  # the section names, each terminated by a zero

    def name(self, row: int) -> bytes:
        """Return a section's name, empty if it is damaged."""
        start = int(self.sections["name"][row])
        return self.names[start : self.names.find(b"\0", start)] if start < len(self.names) else b""

    def fits(self, row: int) -> bool:
        """Return whether the section lies inside the file."""
        section = self.sections[row]
        if section["type"] == TYPE_NOBITS:
            return False
        return int(section["offset"]) + int(section["size"]) <= len(self.data)

    def find(self, *names: bytes) -> list[int]:
        """Return the rows of the sections with one of these names."""
        return [row for row in range(len(self.sections)) if self.name(row) in names]

    def symbols(self) -> NDArray[np.void]:
        """Return the symbol table, empty if the file has none."""
        for row in np.flatnonzero(self.sections["type"] == TYPE_SYMTAB):
            if self.fits(int(row)):
                section = self.sections[row]
                count = int(section["size"]) // _SYMBOL.itemsize
                return np.frombuffer(self.data, _SYMBOL, count, int(section["offset"]))
        return np.empty(0, _SYMBOL)


def read_elf(data: memoryview) -> Elf:
    """Read the section table of an ELF file; ElfError if `data` is not one."""
    if len(data) < HEADER_SIZE or bytes(data[:4]) != b"\x7fELF":
        raise ElfError(0, "not an ELF file")
    header = np.frombuffer(data, _FILE, 1)[0]
    if header["class"] != 2 or header["data"] != 1:
        raise ElfError(4, "not a 64-bit little-endian ELF file")
    table, count, size = int(header["shoff"]), int(header["shnum"]), int(header["shentsize"])
    names_row = int(header["shstrndx"])
    if not table:
        raise ElfError(40, "an ELF file without section headers")
    if size != _SECTION.itemsize:
        raise ElfError(58, f"ELF section headers of {size} bytes, not {_SECTION.itemsize}")
    if table + size > len(data):
        raise ElfError(40, f"the ELF section table at {table:#x} is beyond the end: truncated?")
    first = np.frombuffer(data, _SECTION, 1, table)[0]
    count = count or int(first["size"])
    names_row = int(first["link"]) if names_row == _EXTENDED_INDEX else names_row
    if table + count * size > len(data):
        raise ElfError(60, f"{count} ELF section headers at {table:#x} do not fit: truncated?")
    sections = np.frombuffer(data, _SECTION, count, table)
    elf = Elf(data, int(header["machine"]), int(header["flags"]), sections, b"")
    if not names_row < count or not elf.fits(names_row):
        raise ElfError(62, "the ELF section names are beyond the end: truncated?")
    start = int(sections["offset"][names_row])
    names = bytes(data[start : start + int(sections["size"][names_row])]) + b"\0"
    return Elf(data, elf.machine, elf.flags, sections, names)
