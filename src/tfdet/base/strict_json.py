"""JSON that all readers take for the same: what is signed has to be what is understood."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from tfdet.base.errors import DataError
from tfdet.base.untrusted import MAX_BYTES, read_bytes

MOST_DIGITS = 1000  # Python refuses 4,300 and more in words of its own
_has_escaped_half = re.compile(r"\\u[dD][89a-fA-F]").search
MAX_DEPTH = 100  # what is nested deeper overflows the stack of some later reader


def strict_json(content: str | bytes) -> Any:
    """ValueError where it is none (RFC 8259), is nested deeper than MAX_DEPTH, or an object names a field twice."""
    text = content if isinstance(content, str) else content.decode("utf-8")
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _has_escaped_half(text):  # else it cannot be
        _require_text(found)
    if text.count("[") + text.count("{") > MAX_DEPTH:  # else it cannot be
        _require_shallow(found)
    return found


def read_json(path: Path, advice: str = "", limit: int = MAX_BYTES) -> Any:
    """The strict JSON in an untrusted file; DataError names the file, and the line where there is one."""
    content = read_bytes(path, advice, limit)
    try:
        return strict_json(content)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg}", advice) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not JSON: byte 0x{content[error.start]:02x} is not UTF-8", advice) from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON that every reader takes for the same: {error}", advice) from None


def _require_text(found: Any) -> None:
    """RFC 8259, 8.2: half of a surrogate pair is no character, and readers take it for different ones."""
    try:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which is no character") from None


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _require_shallow(found: Any) -> None:
    layer, depth = [found], 0
    while layer:
        inner = [one for one in layer if isinstance(one, (dict, list))]
        layer = [value for one in inner for value in (one.values() if isinstance(one, dict) else one)]
        depth += bool(inner)
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:40]!r} is there twice")
        found[name] = value
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
