"""Text from strangers as it is: what a terminal or a page would hide, reorder or obey is shown by its number."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from typing import IO, Any

# Control, format, surrogate, private, unassigned, separators of lines and paragraphs.
_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
# Of other categories, and shown as nothing: Unicode's Default_Ignorable_Code_Point.
_IGNORABLE = [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0,
              *range(0xE0000, 0xE1000)]  # fmt: skip
_ASCII = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # a tab is blank


def visible(text: str) -> str:
    """`text` with \\u202e in place of the character of that number, and the like; lines stay lines."""
    if text.isascii():
        return text if text.isprintable() else "\n".join(_ASCII.sub(_number, line) for line in text.split("\n"))
    return "".join(_shown(character) for character in text)


def in_line(text: str, most: int = 200) -> str:
    """A stranger's word within a line of ours: it begins no line of its own, and moves nothing."""
    shown = "".join(_numbered(c) if c in "\n\t" else c for c in visible(text[:most]))
    return shown if len(text) <= most else f"{shown} ..."


@cache
def _shown(character: str) -> str:
    if character in "\n\t":
        return character
    hidden = unicodedata.category(character) in _CATEGORIES or ord(character) in _IGNORABLE
    return _numbered(character) if hidden else character


def _number(found: re.Match[str]) -> str:
    return _numbered(found.group())


def _numbered(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def as_json(text: str) -> str:
    """JSON that says the same with its hidden characters escaped; for machines nothing changes."""
    if text.isascii():
        return text
    return "".join(c if _shown(c) == c else json.dumps(c)[1:-1] for c in text)


def dump_json(value: object, indent: int | None = 1, *, ascii_only: bool = False) -> str:
    """JSON that every reader takes: half of a surrogate pair, as a name that is not UTF-8 has, is written as text."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _escaped(c, ascii_only) for c in text)


def _escaped(character: str, ascii_only: bool) -> str:
    if unicodedata.category(character) == "Cs":
        return json.dumps(_numbered(character))[1:-1]
    return json.dumps(character)[1:-1] if ascii_only or _shown(character) != character else character


class Guarded:
    """A stream that shows what it is told to hide; ASCII passes, rich's own sequences are made of it."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        shown = text if text.isascii() else "".join(c if c.isascii() else _shown(c) for c in text)
        return self._stream.write(shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
