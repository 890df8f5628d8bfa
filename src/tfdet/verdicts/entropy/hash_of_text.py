"""hash() of an object that may contain text: a number that differs between processes.

Why: hash() of str and bytes is keyed unless PYTHONHASHSEED is set.
Example: `bucket = hash(name) % 16`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText, is_key
from tfdet.verdicts.static_analysis import Call


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        if text.name_of(call) == "hash" and not _is_in_hash_method(text, call):
            yield text.place(call, "hash")
        if any(is_key(keyword, "hash") for keyword in call.keywords):
            yield text.place(call, "hash")


def _is_in_hash_method(text: UnitText, call: ast.Call) -> bool:
    """Return whether a call is inside of a __hash__ method, which may combine the hashes of attributes."""
    node: ast.AST | None = call
    while node is not None:
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__":
            return True
        node = text.unit.parents.get(node)
    return False


# PYHASH: the solution that sets PYTHONHASHSEED.
RULE = Rule("hash-of-text", "a number by hash()", "take a digest: zlib.crc32(text.encode())", find, ("PYHASH",))
