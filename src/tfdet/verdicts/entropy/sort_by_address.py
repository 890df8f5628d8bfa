"""A sort, a minimum or a maximum by `key=id`: by addresses, which differ between processes.

Why: id() is an address in CPython; PYTHONHASHSEED does not change it.
Example: `layers.sort(key=id)`
"""

from __future__ import annotations

from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText, is_key
from tfdet.verdicts.static_analysis import Call


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        if any(is_key(keyword, "id") for keyword in call.keywords):
            yield text.place(call, "id")


RULE = Rule("sort-by-address", "a sort by id()", "sort by a value of the objects, such as their names", find)
