"""A library's constant strings about determinism: environment variables that it reads, error messages of its ops.

A string shows that the code exists, not that a program executes it.  Compilers put short strings into instructions,
eight bytes at a time: names of variables are searched there too.  Strings that are built at run time are not found, so
absence proves nothing.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tfdet.audit.elf import FLAG_EXEC, Elf, ElfError, read_elf
from tfdet.base.untrusted import open_file

_SECTIONS = (b".rodata", b".data")
_LONGEST = 1000  # bytes; longer texts about determinism are help texts, not error messages

# The name of a variable is a whole string, not part of a sentence.  Numbers may precede it without a zero in between:
# then up to seven of their bytes can look like letters.
_VARIABLE = re.compile(rb"(?:\A|[^\x20-\x7e][^ \"'=]{0,7}?)((?:TF|XLA)_[A-Z0-9_]+)\Z", re.S)
_KEYWORDS = (b"DETERMINI", b"CUDNN", b"AUTOTUNE")
_NO_TEXT = re.compile(rb"[^\x20-\x7e\n\t]+")  # numbers that precede a text without a zero in between
_MORE_VARIABLES = (b"TF_ENABLE_TENSOR_FLOAT_32_EXECUTION", b"TF_XLA_FLAGS", b"XLA_FLAGS")

_CHUNK = 8  # bytes of the immediate of a movabs
_MOVABS = re.compile(rb"[\x48\x49][\xb8-\xbf]\Z")
_MAX_DISTANCE = 64  # bytes of code before and after, searched for the rest of the name
_MAX_UNSEEN_BYTES = 2  # last bytes of a name that need not be found: compilers may compare them elsewhere

# Error messages of TensorFlow's ops without a deterministic kernel, 1.13 to 2.21.
_REFUSAL = re.compile(
    rb"determini\w+ [^\0]*not (?:currently |yet )?(?:available|supported)"
    rb"|is not deterministic\.|not (?:yet )?have a deterministic|eterminism is enabled",
    re.I,
)
_MORE_MESSAGES = (b"No algorithm worked!",)  # the error if no cuDNN algorithm is left


@dataclass
class Strings:
    """Names of environment variables, and error messages."""

    variables: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)


def search(paths: Iterable[Path], known: Iterable[str]) -> Strings:
    """Search libraries for strings about determinism. known: further names of variables to search for."""
    strings = Strings()
    variables = [*_MORE_VARIABLES, *(name.encode() for name in known)]
    for path in paths:
        if path.stat().st_size:
            with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                constants, code = _sections(data)
                for start, end in constants:
                    _search_section(data, start, end, variables, strings)
                for start, end in code:
                    missing = [name for name in variables if name.decode() not in strings.variables]
                    inlined = [name for name in missing if _contains_inlined(data, start, end, name)]
                    strings.variables |= {name.decode() for name in inlined}
    return strings


_Spans = list[tuple[int, int]]


def _sections(data: mmap.mmap) -> tuple[_Spans, _Spans]:
    """Return the spans of constant strings and of code; none if the file is not a readable library."""
    view = memoryview(data)
    try:
        elf = read_elf(view)
        code = [row for row in np.flatnonzero(elf.sections["flags"] & FLAG_EXEC).tolist() if elf.fits(row)]
        constants = [row for row in elf.find(*_SECTIONS) if elf.fits(row)]
        return _spans(elf, constants), _spans(elf, code)
    except ElfError:
        return [], []
    finally:
        view.release()


def _spans(elf: Elf, rows: list[int]) -> _Spans:
    starts, sizes = elf.sections["offset"].tolist(), elf.sections["size"].tolist()
    return [(starts[row], starts[row] + sizes[row]) for row in rows]


def _contains_inlined(data: mmap.mmap, start: int, end: int, name: bytes) -> bool:
    """Return whether code in data[start:end] contains the name as immediate operands."""
    start_bytes, rest = name[:_CHUNK], name[_CHUNK:]
    if len(start_bytes) < _CHUNK:
        return False
    at = data.find(start_bytes, start, end)
    while at >= 0:
        context = data[max(start, at - _MAX_DISTANCE) : at] + data[at + _CHUNK : min(end, at + _MAX_DISTANCE)]
        if _MOVABS.search(data[max(start, at - 2) : at]) and (len(rest) <= _MAX_UNSEEN_BYTES or name[-4:] in context):
            return True
        at = data.find(start_bytes, at + 1, end)
    return False


def _search_section(data: mmap.mmap, start: int, end: int, variables: list[bytes], strings: Strings) -> None:
    for needle in (*_KEYWORDS, *variables):
        for text in _around(data, start, end, needle):
            variable = _VARIABLE.search(text)
            if variable and (needle in _KEYWORDS or variable[1] == needle):
                strings.variables.add(variable[1].decode())
    for needle in (b"eterminis", *_MORE_MESSAGES):
        for text in _around(data, start, end, needle):
            if needle in _MORE_MESSAGES or _REFUSAL.search(text):
                strings.messages.add(" ".join(_NO_TEXT.split(text)[-1].decode().split()))


def _around(data: mmap.mmap, start: int, end: int, needle: bytes) -> Iterator[bytes]:
    """Yield the zero-terminated strings of data[start:end] that contain `needle` and are not too long."""
    at = data.find(needle, start, end)
    while at >= 0:
        first = data.rfind(b"\0", max(start, at - _LONGEST), at) + 1
        last = data.find(b"\0", at, min(end, at + _LONGEST))
        if last > 0 and (first or at - start < _LONGEST):
            yield data[first or start : last]
        at = data.find(needle, max(last, at + len(needle)), end)
