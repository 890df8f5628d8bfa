"""The base of the entropy rules, which find inputs that differ between runs: Rule, and the program as it sees it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tfdet.verdicts.static_analysis import Call, NameResolver, SourceUnit, dotted

# Functions whose result does not depend on the order of their argument's elements.
_ORDER_FREE = ("sorted", "len", "set", "frozenset", "min", "max", "any", "all", "collections.Counter", "math.fsum")
# Nodes whose result has the order of their operand's elements.
_ORDER_KEEPING = (ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.Call, ast.Starred, ast.IfExp)


@dataclass(frozen=True)
class UnitText:
    """A file or a notebook's cell, with the names that are defined in the whole file."""

    unit: SourceUnit
    names: NameResolver

    @property
    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.unit.nodes if isinstance(node, ast.Call))

    def name_of(self, call: ast.Call) -> str:
        """Return the qualified name of a called function, the name of a builtin, or "?.name" for a method."""
        if full := self.names.qualified_name(call.func):
            return full
        if isinstance(call.func, ast.Name):
            return call.func.id
        return f"?.{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""

    def is_order_free(self, node: ast.AST) -> bool:
        """Return whether nothing depends on the order of a node's elements, as in sorted(), len(), a set or sort()."""
        child, parent = node, self.unit.parents.get(node)
        while parent is not None and not isinstance(parent, ast.stmt):
            if isinstance(parent, ast.SetComp) or (isinstance(parent, ast.Compare) and child in parent.comparators):
                return True
            if isinstance(parent, ast.Call) and self.name_of(parent) in _ORDER_FREE:
                return True
            if not isinstance(parent, _ORDER_KEEPING):
                return False
            child, parent = parent, self.unit.parents.get(parent)
        if not isinstance(parent, ast.Assign):
            return False
        return any(self._is_sorted_later(dotted(target)) for target in parent.targets)

    def _is_sorted_later(self, name: str) -> bool:
        return bool(name) and any(
            dotted(call.func) == f"{name}.sort"
            or (self.name_of(call) in _ORDER_FREE and any(dotted(argument) == name for argument in call.args))
            for call in self.calls
        )

    def place(self, node: ast.expr, name: str) -> Call:
        return Call(name, self.unit.file, node.lineno, self.unit.cell)


def is_key(keyword: ast.keyword, function: str) -> bool:
    """Return whether a keyword argument is `key=` and the name of this function."""
    return keyword.arg == "key" and isinstance(keyword.value, ast.Name) and keyword.value.id == function


@dataclass(frozen=True)
class Rule:
    """A rule.  title: what it finds.  advice: what to do.  settled_by: solutions that make what it finds harmless."""

    id: str
    title: str
    advice: str
    find: Callable[[UnitText], Iterator[Call]]
    settled_by: tuple[str, ...] = ()
