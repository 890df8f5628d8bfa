"""hash() of an object whose hash may be of text, and id(): numbers that each process chooses anew.

Why: hash() of str and bytes is keyed unless PYTHONHASHSEED is set; id() is an address.
Example: `bucket = hash(name) % 16`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        if text.name_of(call) == "hash" and not _is_in_hash_method(text, call):
            yield text.place(call, "hash")
        for word in call.keywords:
            if word.arg == "key" and isinstance(word.value, ast.Name) and word.value.id in ("hash", "id"):
                yield text.place(call, word.value.id)


def _is_in_hash_method(text: UnitText, call: ast.Call) -> bool:
    """A class that defines its own hash hands those of its parts on."""
    at: ast.AST | None = call
    while at is not None:
        if isinstance(at, ast.FunctionDef) and at.name == "__hash__":
            return True
        at = text.unit.parents.get(at)
    return False


RULE = Rule("hash-of-text", "a number by hash() or id()", "take a digest: zlib.crc32(text.encode())", find, ("PYHASH",))
