"""JSON that all readers take for the same: what is signed has to be what is understood."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def strict_json(content: str | bytes) -> Any:
    """ValueError where it is none (RFC 8259), or where an object names a field twice."""
    text = content if isinstance(content, str) else content.decode("utf-8")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:40]!r} is there twice")
        found[name] = value
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
