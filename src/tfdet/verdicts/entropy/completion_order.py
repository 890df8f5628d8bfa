"""Results in the order in which threads or processes finish.

Why: which one finishes first depends on the load of the machine.
Example: `for done in concurrent.futures.as_completed(futures): total += done.result()`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

# ?.NAME: a method of an unknown object.
_NAMES = ("concurrent.futures.as_completed", "asyncio.as_completed", "?.imap_unordered")
_LOADER = "torch.utils.data.DataLoader"


def find(text: UnitText) -> Iterator[Call]:
    for call in text.calls:
        name = text.name_of(call)
        if (name in _NAMES or (name == _LOADER and _is_out_of_order(call))) and not text.is_order_free(call):
            yield text.place(call, name.removeprefix("?."))


def _is_out_of_order(call: ast.Call) -> bool:
    return any(
        keyword.arg == "in_order" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in call.keywords
    )


RULE = Rule(
    "completion-order",
    "results in the order of completion",
    "take them in order of submission: map, or wait for each",
    find,
)
