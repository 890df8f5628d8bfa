"""What a rule is, and what it may ask of a program's text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tfdet.verdicts.static_analysis import Call, NameResolver, SourceUnit, dotted

# What becomes of these does not depend on the order in which they take their argument's parts.
_ORDER_FREE = ("sorted", "len", "set", "frozenset", "min", "max", "any", "all", "collections.Counter", "math.fsum")
# The order of their argument's parts is that of their result's.
_ORDER_KEEPING = (ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.Call, ast.Starred, ast.IfExp)


@dataclass(frozen=True)
class UnitText:
    """A file or a cell, with what its names stand for in the whole file."""

    unit: SourceUnit
    names: NameResolver

    @property
    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.unit.nodes if isinstance(node, ast.Call))

    def name_of(self, call: ast.Call) -> str:
        """As it is imported; of a builtin its name; of a method "?.name"."""
        if full := self.names.qualified_name(call.func):
            return full
        if isinstance(call.func, ast.Name):
            return call.func.id
        return f"?.{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""

    def is_order_free(self, node: ast.AST) -> bool:
        """Does its order get lost before anything can depend on it: in sorted(), len(), a set, or by its own sort()?"""
        below, at = node, self.unit.parents.get(node)
        while at is not None and not isinstance(at, ast.stmt):
            if isinstance(at, ast.SetComp) or (isinstance(at, ast.Compare) and below in at.comparators):
                return True
            if isinstance(at, ast.Call) and self.name_of(at) in _ORDER_FREE:
                return True
            if not isinstance(at, _ORDER_KEEPING):
                return False
            below, at = at, self.unit.parents.get(at)
        return isinstance(at, ast.Assign) and any(self._is_sorted_later(dotted(target)) for target in at.targets)

    def _is_sorted_later(self, name: str) -> bool:
        return bool(name) and any(
            dotted(call.func) == f"{name}.sort"
            or (self.name_of(call) in _ORDER_FREE and any(dotted(one) == name for one in call.args))
            for call in self.calls
        )

    def place(self, node: ast.expr, name: str) -> Call:
        return Call(name, self.unit.file, node.lineno, self.unit.cell)


@dataclass(frozen=True)
class Rule:
    """title: what it finds.  mend: what to do.  settled_by: solutions of the matrix under which it does no harm."""

    id: str
    title: str
    mend: str
    find: Callable[[UnitText], Iterator[Call]]
    settled_by: tuple[str, ...] = ()
