"""Escape characters of untrusted text that a terminal or a page would hide, reorder or obey."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from typing import IO, Any

# Control, format, surrogate, private, unassigned, separators of lines and paragraphs.
_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
# Invisible characters of other categories: Unicode's Default_Ignorable_Code_Point.
_IGNORABLE = [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0,
              *range(0xE0000, 0xE1000)]  # fmt: skip
_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # all but tab and newline


def escape_hidden(text: str) -> str:
    """Replace each hidden character by its escape, such as \\u202e; newlines and tabs stay."""
    if text.isascii():
        return (
            text
            if text.isprintable()
            else "\n".join(_ASCII_CONTROL.sub(_escape_match, line) for line in text.split("\n"))
        )
    return "".join(_escape_if_hidden(character) for character in text)


def escape_line(text: str, max_length: int = 200) -> str:
    """Escape untrusted text for use in one line, with its newlines and tabs, and cut it at `max_length` characters."""
    escaped = "".join(_escape_character(c) if c in "\n\t" else c for c in escape_hidden(text[:max_length]))
    return escaped if len(text) <= max_length else f"{escaped} ..."


@cache
def _escape_if_hidden(character: str) -> str:
    if character in "\n\t":
        return character
    is_hidden = unicodedata.category(character) in _CATEGORIES or ord(character) in _IGNORABLE
    return _escape_character(character) if is_hidden else character


def _escape_match(match: re.Match[str]) -> str:
    return _escape_character(match.group())


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape_json(text: str) -> str:
    """Escape the hidden characters of a JSON text, without changing its value."""
    if text.isascii():
        return text
    return "".join(c if _escape_if_hidden(c) == c else json.dumps(c)[1:-1] for c in text)


def dump_json(value: object, indent: int | None = 1, *, ascii_only: bool = False) -> str:
    """Dump JSON that every parser accepts: half a surrogate pair, from a name that is not UTF-8, is escaped as text."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _json_escape(c, ascii_only) for c in text)


def _json_escape(character: str, ascii_only: bool) -> str:
    if unicodedata.category(character) == "Cs":
        return json.dumps(_escape_character(character))[1:-1]
    return json.dumps(character)[1:-1] if ascii_only or _escape_if_hidden(character) != character else character


class SanitizingStream:
    """A stream that escapes hidden characters, except in ASCII text: that contains rich's escape sequences."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        escaped = text if text.isascii() else "".join(c if c.isascii() else _escape_if_hidden(c) for c in text)
        return self._stream.write(escaped)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
