"""Iteration over a set.

Why: the order of strings in a set depends on their hashes, which differ between processes unless PYTHONHASHSEED is set.
Example: `index = {word: i for i, word in enumerate(set(words))}`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

# ?.NAME: a method of an unknown object.
_ITERATING_FUNCTIONS = ("list", "tuple", "enumerate", "iter", "zip", "map", "?.join", "?.extend", "?.fromkeys")
_SET_CONSTRUCTORS = ("set", "frozenset")
_SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
_MAX_DEPTH = 4  # names and operators that are followed


def find(text: UnitText) -> Iterator[Call]:
    lines = set()
    for node in (iterated for parent in text.unit.nodes for iterated in _iterated(text, parent)):
        if _is_set(text, node) and not text.is_order_free(node) and node.lineno not in lines:
            lines.add(node.lineno)
            yield text.place(node, "set")


def _iterated(text: UnitText, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions over whose elements a node iterates."""
    if isinstance(node, ast.For):
        yield node.iter
    elif isinstance(node, ast.Call) and text.name_of(node) in _ITERATING_FUNCTIONS:
        yield from node.args
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        yield from (comprehension.iter for comprehension in node.generators)


def _is_set(text: UnitText, node: ast.AST | None, depth: int = 0) -> bool:
    """Return whether an expression is a set; a set of number literals, whose order is fixed, does not count."""
    if isinstance(node, ast.Set):
        return not all(
            isinstance(element, ast.Constant) and isinstance(element.value, int | float) for element in node.elts
        )
    if isinstance(node, ast.Call):
        return text.name_of(node) in _SET_CONSTRUCTORS
    if depth < _MAX_DEPTH and isinstance(node, ast.BinOp) and isinstance(node.op, _SET_OPERATORS):
        return _is_set(text, node.left, depth + 1) or _is_set(text, node.right, depth + 1)
    if depth < _MAX_DEPTH and isinstance(node, ast.Name) and (values := text.names.assigned(node.id)):
        return all(_is_set(text, value, depth + 1) for value in values)
    return isinstance(node, ast.SetComp)


# PYHASH: the solution that sets PYTHONHASHSEED.
RULE = Rule("set-order", "a set in the order of its hashes", "take sorted(...) of it", find, ("PYHASH",))
