"""What the text of a Python program says: names, where objects come from, calls with their arguments, settings."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tfdet.verdicts.ignore_comments import Ignore
from tfdet.verdicts.memory_use import MemoryUse, MemoryUseAnalysis

UNKNOWN = "?"
BUILTIN = "builtins"
_MAX_DEPTH = 20  # what an object comes from is followed through so many names
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LITERALS = (
    ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


@dataclass(frozen=True)
class ArgumentValue:
    """An argument.  value: of a literal.  name: as the program has it, of a constant or, with (), of a call."""

    value: bool | int | float | str | None = None
    name: str = ""
    known: bool = True


@dataclass(frozen=True)
class Call:
    """name: with the modules that the program imports; of a method "?.name".

    roots: where the object of a method comes from.  has_star_args: it has *args or **kwargs, whose values are unknown.
    sets: an assignment, not a call.  fate: how the uninitialized memory that it allocates is used.
    is_guess: the name may be another module's, of a star import.
    """

    name: str
    file: str
    line: int
    cell: int = 0
    positional: tuple[ArgumentValue, ...] = ()
    keywords: dict[str, ArgumentValue] = field(default_factory=dict, hash=False)
    has_star_args: bool = False
    sets: bool = False
    roots: frozenset[str] = frozenset()
    fate: MemoryUse | None = None
    is_guess: bool = False

    @property
    def is_method(self) -> bool:
        return self.name.startswith(UNKNOWN)

    @property
    def place(self) -> tuple[str, int, int]:
        """Its file, line, and cell of a notebook or 0."""
        return self.file, self.line, self.cell

    @property
    def where(self) -> str:
        return f"{self.file}:cell {self.cell}:{self.line}" if self.cell else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class SourceUnit:
    """A file, or a cell of a notebook."""

    tree: ast.Module
    file: str
    cell: int = 0
    ignores: tuple[Ignore, ...] = ()

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """As one reads it: a later setting is the one that stays."""
        placed = (node for node in ast.walk(self.tree) if hasattr(node, "lineno"))
        return sorted(placed, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def dotted(node: ast.AST) -> str:
    """Empty where it is no dotted name. getattr(nn, "LSTM") is nn.LSTM."""
    parts = []
    while member := _member(node):
        node, name = member
        parts.append(name)
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _member(node: ast.AST) -> tuple[ast.AST, str] | None:
    """The object, and the name of its member."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        match node.args:
            case [owner, ast.Constant(value=str(name)), *_] if name.isidentifier():
                return owner, name
    return None


class NameResolver:
    """What the names of a file stand for."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.imported: dict[str, str] = {}
        self._origins: dict[str, list[ast.AST | None]] = {}
        self._roots: dict[str, frozenset[str]] = {}
        nodes = list(nodes)
        self._star_imports = [module for node in nodes for module in _star_imports(node)]
        self._defined = {node.name for node in nodes if isinstance(node, _DEFINITIONS)}
        for node in nodes:
            self.imported |= dict(_imported(node))
        for node in nodes:
            for name, value in _assignments(node):
                self._origins.setdefault(name, []).append(value)
        for name, values in self._origins.items():
            only = values[0] if len(values) == 1 else None
            if only and name not in self.imported and (full := self.qualified_name(only)):
                self.imported[name] = full

    def qualified_name(self, node: ast.AST) -> str:
        """With the module that it is imported from; empty where it is not."""
        top, _, rest = dotted(node).partition(".")
        if top not in self.imported:
            return ""
        return f"{self.imported[top]}.{rest}" if rest else self.imported[top]

    def star_names(self, node: ast.AST) -> list[str]:
        """What a name may stand for that nothing in the file gives: of each `from MODULE import *` one."""
        name = dotted(node)
        top = name.partition(".")[0]
        given = top in self.imported or top in self._origins or top in self._defined or hasattr(builtins, top)
        return [] if given or not name else [f"{module}.{name}" for module in self._star_imports]

    def assigned(self, name: str) -> Sequence[ast.AST | None]:
        """All that is assigned to a name in the file; None for what may be anything."""
        return self._origins.get(name, ())

    def roots(self, node: ast.AST) -> frozenset[str]:
        """The packages that an object comes from; UNKNOWN among them where it may be any."""
        key = dotted(node)
        if key not in self._roots or not key:
            self._roots[key] = frozenset(self._walk(node))
        return self._roots[key]

    def _walk(self, node: ast.AST) -> Iterator[str]:
        ahead: list[ast.AST | None] = [node]
        seen: set[str] = set()
        while ahead:
            at = ahead.pop()
            if len(seen) > _MAX_DEPTH:
                yield UNKNOWN
                return
            while at is not None and (name := dotted(at)) not in self._origins and (inner := _inner(at)):
                at = inner
            if at is not None and name in self._origins and name not in self.imported:
                ahead += self._origins[name] if name not in seen else []
                seen.add(name)
            elif isinstance(at, ast.Name) and at.id in self.imported:
                yield self.imported[at.id].partition(".")[0]
            else:
                yield BUILTIN if isinstance(at, _LITERALS) else UNKNOWN


def _inner(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred):
        return node.value
    return node.func if isinstance(node, ast.Call) else None


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(name in the program, what it stands for)."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _star_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from (node.module for alias in node.names if alias.name == "*")


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """(name, what is assigned to it; None where that is anything)."""
    if isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            whole = not isinstance(target, ast.Tuple | ast.List)
            for one in [target] if whole else target.elts:  # type: ignore[attr-defined]
                if name := dotted(one):
                    yield name, node.value if whole else None
    else:
        yield from (
            (one.id, None) for target in _targets(node) for one in ast.walk(target) if isinstance(one, ast.Name)
        )


def _targets(node: ast.AST) -> list[ast.expr]:
    """Of loops, comprehensions and with."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.target]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.optional_vars for item in node.items if item.optional_vars]
    return [part.target for part in getattr(node, "generators", [])]


def calls(unit: SourceUnit, names: NameResolver) -> Iterator[Call]:
    fates = MemoryUseAnalysis(unit.tree, unit.parents, names.qualified_name)
    for node in unit.nodes:
        if isinstance(node, ast.Call):
            for found in _calls_at(node, unit, names):
                yield replace(found, fate=fates.of_call(node, found.name))


def _calls_at(node: ast.Call, unit: SourceUnit, names: NameResolver) -> Iterator[Call]:
    """One; for a name that star imports may give also a guess for each of them."""
    if full := names.qualified_name(node.func):
        yield _call(full, node, unit, names)
    elif isinstance(node.func, ast.Attribute):
        yield _call(_method(node.func), node, unit, names, names.roots(node.func.value))
    for name in names.star_names(node.func):
        yield replace(_call(name, node, unit, names), is_guess=True)


def _method(node: ast.Attribute) -> str:
    """Of x.at[i].add: ?.at[].add."""
    inner = node.value.value if isinstance(node.value, ast.Subscript) else None
    return f"?.{inner.attr}[].{node.attr}" if isinstance(inner, ast.Attribute) else f"?.{node.attr}"


def _call(
    name: str, node: ast.Call, unit: SourceUnit, names: NameResolver, roots: frozenset[str] = frozenset()
) -> Call:
    more = any(isinstance(one, ast.Starred) for one in node.args) or any(word.arg is None for word in node.keywords)
    keywords = {word.arg: _argument_value(word.value, names) for word in node.keywords if word.arg}
    places = tuple(_argument_value(one, names) for one in node.args)
    return Call(name, unit.file, node.lineno, unit.cell, places, keywords, more, roots=roots)


def settings(unit: SourceUnit, names: NameResolver) -> Iterator[Call]:
    """package.name = value, as a call with the value."""
    for node in unit.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and (full := names.qualified_name(target)):
                    yield Call(
                        full, unit.file, node.lineno, unit.cell, (_argument_value(node.value, names),), sets=True
                    )


def _argument_value(node: ast.AST, names: NameResolver) -> ArgumentValue:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str | None):
        return ArgumentValue(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        return ArgumentValue(-number) if isinstance(number, int | float) else ArgumentValue(known=False)
    if isinstance(node, _LITERALS):
        return ArgumentValue(name="[]")
    made = isinstance(node, ast.Call)
    if full := names.qualified_name(node.func if isinstance(node, ast.Call) else node):
        return ArgumentValue(name=f"{full}()" if made else full)
    return ArgumentValue(known=False)


def environment(unit: SourceUnit) -> Iterator[tuple[str, str]]:
    """os.environ["NAME"] = "VALUE", and setdefault."""
    for node in unit.nodes:
        pairs: list[tuple[ast.AST, ast.AST]] = []
        if isinstance(node, ast.Assign):
            pairs = [(one.slice, node.value) for one in node.targets if _is_environ_item(one)]  # type: ignore[attr-defined]
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("environ.setdefault") and len(node.args) == 2:
            pairs = [(node.args[0], node.args[1])]
        for key, value in pairs:
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                yield str(key.value), str(value.value)


def _is_environ_item(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and dotted(node.value).endswith("environ")
