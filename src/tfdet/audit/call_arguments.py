"""With which texts a library calls a function: `alertNotDeterministic("index_reduce_cuda")`, read out of x86-64 code.

A text is a constant that is given as an address and a length.  A call is known by where it leads: to the function, or
to the entry of .plt that jumps there.  Its text is the last constant before it whose very length stands there too, or,
in code of old compilers, is counted there.  A call of which no such text is found is counted, and nothing is guessed.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tfdet.audit.elf import Elf, ElfError, read_elf
from tfdet.base.untrusted import open_file

_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
                    ("size", "<u8")])  # fmt: skip
_RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_STUB = re.compile(rb"\xff\x25(....)", re.S)  # jmp *offset(%rip)
_STUB_SIZE = 16
_CALL = np.array([0xE8, 0xE9], np.uint8)  # call, and jmp where the call comes last
_CALL_SIZE = 5
_ADDRESS = re.compile(
    rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....)", re.S
)  # lea offset(%rip), any register
_MAX_DISTANCE = 256  # bytes before a call in which its text is named
_LENGTH_PREFIXED = re.compile(  # a length that is counted: add $1; test or compare with zero; jne
    rb"[\x48\x49]\x83[\xc0-\xc7]\x01(?:[\x40-\x47]?\x84.|[\x41]?\x80.\x00)\x75", re.S
)
_END = re.compile(
    rb"\xc3(?:\x90|\x66|\x2e|\x0f\x1f|\xf3\x0f\x1e\xfa)"
)  # of a function: ret, then filling or the next one
_TEXT = re.compile(rb"[\x20-\x7e]{3,}\Z")
_CHUNK = 1 << 24


@dataclass
class Calls:
    """texts: how many calls with each.  unresolved: calls whose text was not found."""

    texts: Counter[str] = field(default_factory=Counter)
    unresolved: int = 0


def find_calls(path: Path, function: bytes) -> Calls:
    """Of the function whose mangled name holds `function`; none where the library does not know it."""
    found = Calls()
    with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for text in _texts(data, function):
            if text is None:
                found.unresolved += 1
            else:
                found.texts[text] += 1
    return found


def _texts(data: mmap.mmap, function: bytes) -> Iterator[str | None]:
    view = memoryview(data)
    try:
        library = _Library(read_elf(view), data)
        targets = library.entries(function)
        for at in library.calls(targets) if targets else ():
            yield library.text_before(at)
    except ElfError:
        return
    finally:
        library = None  # type: ignore[assignment]  # its arrays hold the view
        view.release()


@dataclass
class _Section:
    address: int
    offset: int
    size: int


class _Library:
    def __init__(self, elf: Elf, data: mmap.mmap) -> None:
        self._data = data
        rows = {elf.name(row): elf.sections[row] for row in range(len(elf.sections)) if elf.fits(row)}
        self._sections = {
            name: _Section(int(row["addr"]), int(row["offset"]), int(row["size"])) for name, row in rows.items()
        }

    def _bytes(self, name: bytes) -> bytes:
        section = self._sections.get(name)
        return self._data[section.offset : section.offset + section.size] if section else b""

    def _table(self, name: bytes, form: np.dtype[np.void]) -> NDArray[np.void]:
        content = self._bytes(name)
        return np.frombuffer(content, form, len(content) // form.itemsize)

    def entries(self, function: bytes) -> list[int]:
        """Addresses that lead to it: its own, and those of the stubs that jump to it."""
        names, symbols = self._bytes(b".dynstr"), self._table(b".dynsym", _SYMBOL)
        known = _named(names, function)
        rows = np.flatnonzero(np.isin(symbols["name"], known)).tolist()
        own = [int(symbols["value"][row]) for row in rows if symbols["value"][row]]
        slots: set[int] = set()
        for table in (b".rela.plt", b".rela.dyn"):
            relocations = self._table(table, _RELOCATION)
            slots.update(relocations["offset"][np.isin(relocations["info"] >> 32, rows)].tolist())
        return own + [stub for name in (b".plt", b".plt.sec", b".plt.got") for stub in self._stubs(name, slots)]

    def _stubs(self, name: bytes, slots: set[int]) -> Iterator[int]:
        for jump in _STUB.finditer(self._bytes(name)):
            address = self._sections[name].address
            if address + jump.end() + struct.unpack("<i", jump[1])[0] in slots:
                yield address + jump.start() // _STUB_SIZE * _STUB_SIZE

    def calls(self, targets: list[int]) -> Iterator[int]:
        """Offsets in .text."""
        text = self._sections.get(b".text", _Section(0, 0, 0))
        for start in range(0, text.size, _CHUNK):
            size = min(_CHUNK + _CALL_SIZE - 1, text.size - start)
            code = np.frombuffer(self._data[text.offset + start : text.offset + start + size], np.uint8)
            at = np.flatnonzero(np.isin(code[: max(0, size - _CALL_SIZE + 1)], _CALL))
            far = code[at[:, None] + np.arange(1, _CALL_SIZE)].copy().view("<i4").ravel().astype(np.int64)
            leads = text.address + start + at + _CALL_SIZE + far
            yield from (start + at[np.isin(leads, targets)]).tolist()

    def text_before(self, at: int) -> str | None:
        code, constants = self._sections[b".text"], self._sections.get(b".rodata", _Section(0, 0, 0))
        first = max(0, at - _MAX_DISTANCE)
        near = self._data[code.offset + first : code.offset + at]
        for end in _END.finditer(near):  # what stands before it is another function's: blotted out
            near = bytes(end.start() + 1) + near[end.start() + 1 :]
        for named in reversed(list(_ADDRESS.finditer(near))):
            place = code.address + first + named.end() + struct.unpack("<i", named[1])[0] - constants.address
            if 0 <= place < constants.size:
                start = constants.offset + place
                text = self._data[start : self._data.find(b"\0", start)]
                if _TEXT.match(text) and _has_length(text, near, named.end()):
                    return text.decode("ascii")
        return None


def _has_length(text: bytes, near: bytes, behind: int) -> bool:
    """Does the code hold its length, or count it behind the address?"""
    return struct.pack("<I", len(text)) in near or _LENGTH_PREFIXED.search(near, behind) is not None


def _named(names: bytes, function: bytes) -> list[int]:
    """Where the names that hold it begin."""
    found, at = [], names.find(function)
    while at >= 0:
        found.append(names.rfind(b"\0", 0, at) + 1)
        at = names.find(function, at + 1)
    return found
