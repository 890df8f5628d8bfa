"""The string arguments that x86-64 machine code passes to a function: `alertNotDeterministic("index_reduce_cuda")`.

The module searches for calls whose target is the function, or an entry of .plt that jumps to it.  The argument of a
call is the last string constant whose address is loaded before it, if the code also contains the string's length, or
(as old compilers do) counts it in a loop.  A call without such a string counts as unresolved.
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
_STUB = re.compile(rb"\xff\x25(....)", re.S)  # jmp *offset(%rip): an entry of .plt
_STUB_SIZE = 16
_CALL = np.array([0xE8, 0xE9], np.uint8)  # call; jmp for a tail call
_CALL_SIZE = 5
_ADDRESS = re.compile(
    rb"[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....)", re.S
)  # lea offset(%rip), any register
_MAX_DISTANCE = 256  # bytes before a call that are searched for its argument
_STRLEN_LOOP = re.compile(  # counts characters: add $1; test or compare with zero; jne
    rb"[\x48\x49]\x83[\xc0-\xc7]\x01(?:[\x40-\x47]?\x84.|[\x41]?\x80.\x00)\x75", re.S
)
_END = re.compile(
    rb"\xc3(?:\x90|\x66|\x2e|\x0f\x1f|\xf3\x0f\x1e\xfa)"
)  # end of a function: ret, then padding or the next function
_TEXT = re.compile(rb"[\x20-\x7e]{3,}\Z")
_CHUNK = 1 << 24


@dataclass
class Calls:
    """The calls of one function.  texts: {argument: number of calls}.  unresolved: calls without a known argument."""

    texts: Counter[str] = field(default_factory=Counter)
    unresolved: int = 0


def find_calls(path: Path, function: bytes) -> Calls:
    """Find the calls of the function whose mangled name contains `function`; none if no symbol has such a name."""
    calls = Calls()
    with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for text in _arguments_of_calls(data, function):
            if text is None:
                calls.unresolved += 1
            else:
                calls.texts[text] += 1
    return calls


def _arguments_of_calls(data: mmap.mmap, function: bytes) -> Iterator[str | None]:
    """Yield for each call its string argument, or None if that is not found; nothing if `data` is not an ELF file."""
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
    """A section of a library: its virtual address, and its place in the file."""

    address: int
    offset: int
    size: int


class _Library:
    """An x86-64 library, with methods to find the calls of a function and their arguments."""

    def __init__(self, elf: Elf, data: mmap.mmap) -> None:
        self._data = data
        sections = {elf.name(row): elf.sections[row] for row in range(len(elf.sections)) if elf.fits(row)}
        self._sections = {
            name: _Section(int(row["addr"]), int(row["offset"]), int(row["size"])) for name, row in sections.items()
        }

    def _bytes(self, name: bytes) -> bytes:
        section = self._sections.get(name)
        return self._data[section.offset : section.offset + section.size] if section else b""

    def _table(self, name: bytes, form: np.dtype[np.void]) -> NDArray[np.void]:
        content = self._bytes(name)
        return np.frombuffer(content, form, len(content) // form.itemsize)

    def entries(self, function: bytes) -> list[int]:
        """Return the addresses at which a call reaches the function: its own, and those of its stubs in .plt."""
        names, symbols = self._bytes(b".dynstr"), self._table(b".dynsym", _SYMBOL)
        rows = np.flatnonzero(np.isin(symbols["name"], _name_offsets(names, function))).tolist()
        definitions = [int(symbols["value"][row]) for row in rows if symbols["value"][row]]
        slots: set[int] = set()
        for table in (b".rela.plt", b".rela.dyn"):
            relocations = self._table(table, _RELOCATION)
            slots.update(relocations["offset"][np.isin(relocations["info"] >> 32, rows)].tolist())
        return definitions + [stub for name in (b".plt", b".plt.sec", b".plt.got") for stub in self._stubs(name, slots)]

    def _stubs(self, name: bytes, slots: set[int]) -> Iterator[int]:
        for jump in _STUB.finditer(self._bytes(name)):
            address = self._sections[name].address
            if address + jump.end() + struct.unpack("<i", jump[1])[0] in slots:
                yield address + jump.start() // _STUB_SIZE * _STUB_SIZE

    def calls(self, targets: list[int]) -> Iterator[int]:
        """Yield the offset in .text of each call of one of the addresses `targets`."""
        text = self._sections.get(b".text", _Section(0, 0, 0))
        for start in range(0, text.size, _CHUNK):
            size = min(_CHUNK + _CALL_SIZE - 1, text.size - start)
            code = np.frombuffer(self._data[text.offset + start : text.offset + start + size], np.uint8)
            at = np.flatnonzero(np.isin(code[: max(0, size - _CALL_SIZE + 1)], _CALL))
            displacement = code[at[:, None] + np.arange(1, _CALL_SIZE)].copy().view("<i4").ravel().astype(np.int64)
            destination = text.address + start + at + _CALL_SIZE + displacement
            yield from (start + at[np.isin(destination, targets)]).tolist()

    def text_before(self, at: int) -> str | None:
        """Return the string argument of the call at offset `at` of .text, or None if it is not found."""
        text_section, constants = self._sections[b".text"], self._sections.get(b".rodata", _Section(0, 0, 0))
        first = max(0, at - _MAX_DISTANCE)
        code = self._data[text_section.offset + first : text_section.offset + at]
        for end in _END.finditer(code):  # zero the code of the function before this one
            code = bytes(end.start() + 1) + code[end.start() + 1 :]
        for load in reversed(list(_ADDRESS.finditer(code))):
            offset = text_section.address + first + load.end() + struct.unpack("<i", load[1])[0] - constants.address
            if 0 <= offset < constants.size:
                start = constants.offset + offset
                text = self._data[start : self._data.find(b"\0", start)]
                if _TEXT.match(text) and _has_length(text, code, load.end()):
                    return text.decode("ascii")
        return None


def _has_length(text: bytes, code: bytes, start: int) -> bool:
    """Return whether the code contains the text's length, or counts it in a loop after offset `start`."""
    return struct.pack("<I", len(text)) in code or _STRLEN_LOOP.search(code, start) is not None


def _name_offsets(names: bytes, function: bytes) -> list[int]:
    """Return the offset in the string table `names` of each name that contains `function`."""
    offsets, at = [], names.find(function)
    while at >= 0:
        offsets.append(names.rfind(b"\0", 0, at) + 1)
        at = names.find(function, at + 1)
    return offsets
