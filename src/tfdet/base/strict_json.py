"""A parser of strict JSON: it accepts only texts that all parsers read alike, so that readers see what was signed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from tfdet.base.errors import DataError
from tfdet.base.untrusted import MAX_BYTES, read_bytes

MAX_DIGITS = 1000  # below Python's own limit of 4,300, which has another error message
_has_escaped_half = re.compile(r"\\u[dD][89a-fA-F]").search
MAX_DEPTH = 100  # levels; deeper nesting overflows the stack of some parsers


def strict_json(content: str | bytes) -> Any:
    """Parse JSON; ValueError if it violates RFC 8259, nests deeper than MAX_DEPTH, or repeats a name in an object."""
    text = content if isinstance(content, str) else content.decode("utf-8")
    try:
        value = json.loads(
            text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant, parse_int=_integer
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _has_escaped_half(text):  # otherwise all text is valid
        _require_text(value)
    if text.count("[") + text.count("{") > MAX_DEPTH:  # otherwise it cannot nest too deeply
        _require_shallow(value)
    return value


def read_json(path: Path, advice: str = "", limit: int = MAX_BYTES) -> Any:
    """Parse strict JSON of an untrusted file; DataError names the file and, if known, the line."""
    content = read_bytes(path, advice, limit)
    try:
        return strict_json(content)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg}", advice) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not JSON: byte 0x{content[error.start]:02x} is not UTF-8", advice) from None
    except ValueError as error:
        raise DataError(f"{path}: not strict JSON: {error}", advice) from None


def _require_text(value: Any) -> None:
    """Refuse half of a surrogate pair: parsers read it differently (RFC 8259, section 8.2)."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which is not a character") from None


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _require_shallow(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        containers = [child for child in layer if isinstance(child, (dict, list))]
        layer = [child for c in containers for child in (c.values() if isinstance(c, dict) else c)]
        depth += bool(containers)
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"{name[:40]!r} occurs twice")
        members[name] = value
    return members


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
