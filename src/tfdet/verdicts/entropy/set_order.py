"""A set whose elements are taken one after the other.

Why: the order of text in a set follows from its hash, which each process chooses anew unless PYTHONHASHSEED is set.
Example: `index = {word: i for i, word in enumerate(set(words))}`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tfdet.verdicts.entropy.rule import Rule, UnitText
from tfdet.verdicts.static_analysis import Call

_TAKES_IN_ORDER = ("list", "tuple", "enumerate", "iter", "zip", "map", "?.join", "?.extend", "?.fromkeys")
_MAKES_SETS = ("set", "frozenset")
_SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
_MAX_DEPTH = 4  # names and operators that are followed


def find(text: UnitText) -> Iterator[Call]:
    seen = set()
    for node in (taken for one in text.unit.nodes for taken in _taken_in_order(text, one)):
        if _is_set(text, node) and not text.is_order_free(node) and node.lineno not in seen:
            seen.add(node.lineno)
            yield text.place(node, "set")


def _taken_in_order(text: UnitText, node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose elements this node takes one after the other."""
    if isinstance(node, ast.For):
        yield node.iter
    elif isinstance(node, ast.Call) and text.name_of(node) in _TAKES_IN_ORDER:
        yield from node.args
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        yield from (part.iter for part in node.generators)


def _is_set(text: UnitText, node: ast.AST | None, depth: int = 0) -> bool:
    """Numbers have the same place in a set in every process: a set of them alone is none here."""
    if isinstance(node, ast.Set):
        return not all(isinstance(one, ast.Constant) and isinstance(one.value, int | float) for one in node.elts)
    if isinstance(node, ast.Call):
        return text.name_of(node) in _MAKES_SETS
    if depth < _MAX_DEPTH and isinstance(node, ast.BinOp) and isinstance(node.op, _SET_OPERATORS):
        return _is_set(text, node.left, depth + 1) or _is_set(text, node.right, depth + 1)
    if depth < _MAX_DEPTH and isinstance(node, ast.Name) and (made := text.names.assigned(node.id)):
        return all(_is_set(text, one, depth + 1) for one in made)
    return isinstance(node, ast.SetComp)


RULE = Rule("set-order", "a set in the order of its hashes", "take sorted(...) of it", find, ("PYHASH",))
