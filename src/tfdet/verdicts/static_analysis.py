"""Static analysis of Python programs: imported names, the origins of objects, calls with their arguments, settings."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tfdet.verdicts.ignore_comments import Ignore
from tfdet.verdicts.memory_use import MemoryUse, MemoryUseAnalysis

UNKNOWN = "?"  # an object whose origin is unknown, and the prefix of a method's name
BUILTIN = "builtins"
_MAX_DEPTH = 20  # names through which the origin of an object is followed
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LITERALS = (
    ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


@dataclass(frozen=True)
class ArgumentValue:
    """An argument of a call.

    value: that of a literal.  name: the qualified name of a constant or, with (), of a call; [] for a collection.
    known: whether value or name are known.
    """

    value: bool | int | float | str | None = None
    name: str = ""
    known: bool = True


@dataclass(frozen=True)
class Call:
    """A call in a program, or an assignment to a setting.

    name: the qualified name; "?.name" for a method of an object.  notebook_cell: number of the notebook's cell, or 0.
    has_star_args: whether it has *args or **kwargs, whose values are unknown.
    is_assignment: of a value to the name, not a call.  roots: the packages that the object of a method comes from.
    memory_use: the use of the uninitialized memory that it allocates; None if it allocates none.
    is_guess: whether the name is a guess, because several star imports may define it.
    """

    name: str
    file: str
    line: int
    notebook_cell: int = 0
    positional: tuple[ArgumentValue, ...] = ()
    keywords: dict[str, ArgumentValue] = field(default_factory=dict, hash=False)
    has_star_args: bool = False
    is_assignment: bool = False
    roots: frozenset[str] = frozenset()
    memory_use: MemoryUse | None = None
    is_guess: bool = False

    @property
    def is_method(self) -> bool:
        return self.name.startswith(UNKNOWN)

    @property
    def place(self) -> tuple[str, int, int]:
        """Its file, line, and cell of a notebook or 0."""
        return self.file, self.line, self.notebook_cell

    @property
    def where(self) -> str:
        return (
            f"{self.file}:cell {self.notebook_cell}:{self.line}" if self.notebook_cell else f"{self.file}:{self.line}"
        )


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
        """All nodes with a position, in source order."""
        nodes = (node for node in ast.walk(self.tree) if hasattr(node, "lineno"))
        return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def dotted(node: ast.AST) -> str:
    """Return an expression as a dotted name, or an empty text; getattr(nn, "LSTM") gives nn.LSTM."""
    parts = []
    while member := _member(node):
        node, name = member
        parts.append(name)
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _member(node: ast.AST) -> tuple[ast.AST, str] | None:
    """Return (object, attribute name) of an attribute access, or None."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        match node.args:
            case [owner, ast.Constant(value=str(name)), *_] if name.isidentifier():
                return owner, name
    return None


class NameResolver:
    """Resolves the names in a file to what they import or to the expressions that are assigned to them."""

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
            single = values[0] if len(values) == 1 else None
            if single and name not in self.imported and (full := self.qualified_name(single)):
                self.imported[name] = full

    def qualified_name(self, node: ast.AST) -> str:
        """Return the dotted name of an expression with the module that it is imported from; else an empty text."""
        top, _, rest = dotted(node).partition(".")
        if top not in self.imported:
            return ""
        return f"{self.imported[top]}.{rest}" if rest else self.imported[top]

    def star_names(self, node: ast.AST) -> list[str]:
        """Return the qualified names that an undefined name may have, one for each `from MODULE import *`."""
        name = dotted(node)
        top = name.partition(".")[0]
        is_defined = top in self.imported or top in self._origins or top in self._defined or hasattr(builtins, top)
        return [] if is_defined or not name else [f"{module}.{name}" for module in self._star_imports]

    def assigned(self, name: str) -> Sequence[ast.AST | None]:
        """Return the expressions that the file assigns to a name; None stands for an unknown value."""
        return self._origins.get(name, ())

    def roots(self, node: ast.AST) -> frozenset[str]:
        """Return the packages that an object may come from, with UNKNOWN if it may be any other."""
        key = dotted(node)
        if key not in self._roots or not key:
            self._roots[key] = frozenset(self._find_roots(node))
        return self._roots[key]

    def _find_roots(self, node: ast.AST) -> Iterator[str]:
        pending: list[ast.AST | None] = [node]
        followed: set[str] = set()
        while pending:
            expression = pending.pop()
            if len(followed) > _MAX_DEPTH:
                yield UNKNOWN
                return
            while (
                expression is not None
                and (name := dotted(expression)) not in self._origins
                and (inner := _object_of(expression))
            ):
                expression = inner
            if expression is not None and name in self._origins and name not in self.imported:
                pending += self._origins[name] if name not in followed else []
                followed.add(name)
            elif isinstance(expression, ast.Name) and expression.id in self.imported:
                yield self.imported[expression.id].partition(".")[0]
            else:
                yield BUILTIN if isinstance(expression, _LITERALS) else UNKNOWN


def _object_of(node: ast.AST) -> ast.AST | None:
    """Return the object of which an expression is an attribute, an item or the result of a call."""
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred):
        return node.value
    return node.func if isinstance(node, ast.Call) else None


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (name in the program, qualified name) of an import statement."""
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
    """Yield (name, the expression that is assigned to it); None stands for an unknown value."""
    if isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            is_single = not isinstance(target, ast.Tuple | ast.List)
            for element in [target] if is_single else target.elts:  # type: ignore[attr-defined]
                if name := dotted(element):
                    yield name, node.value if is_single else None
    else:
        yield from (
            (part.id, None) for target in _targets(node) for part in ast.walk(target) if isinstance(part, ast.Name)
        )


def _targets(node: ast.AST) -> list[ast.expr]:
    """Return the targets of a loop, a comprehension or a with statement."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.target]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.optional_vars for item in node.items if item.optional_vars]
    return [comprehension.target for comprehension in getattr(node, "generators", [])]


def calls(unit: SourceUnit, names: NameResolver) -> Iterator[Call]:
    """Yield the calls of a unit, in source order."""
    analysis = MemoryUseAnalysis(unit.tree, unit.parents, names.qualified_name)
    for node in unit.nodes:
        if isinstance(node, ast.Call):
            for call in _calls_at(node, unit, names):
                yield replace(call, memory_use=analysis.use_of_call(node, call.name))


def _calls_at(node: ast.Call, unit: SourceUnit, names: NameResolver) -> Iterator[Call]:
    """Yield one call or, for a name that star imports may define, a guess for each of them."""
    if full := names.qualified_name(node.func):
        yield _call(full, node, unit, names)
    elif isinstance(node.func, ast.Attribute):
        yield _call(_method_name(node.func), node, unit, names, names.roots(node.func.value))
    for name in names.star_names(node.func):
        yield replace(_call(name, node, unit, names), is_guess=True)


def _method_name(node: ast.Attribute) -> str:
    """Return the name of a method call: ?.add for x.add, ?.at[].add for x.at[i].add."""
    inner = node.value.value if isinstance(node.value, ast.Subscript) else None
    return f"?.{inner.attr}[].{node.attr}" if isinstance(inner, ast.Attribute) else f"?.{node.attr}"


def _call(
    name: str, node: ast.Call, unit: SourceUnit, names: NameResolver, roots: frozenset[str] = frozenset()
) -> Call:
    has_star_args = any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        keyword.arg is None for keyword in node.keywords
    )
    keywords = {keyword.arg: _argument_value(keyword.value, names) for keyword in node.keywords if keyword.arg}
    positional = tuple(_argument_value(argument, names) for argument in node.args)
    return Call(name, unit.file, node.lineno, unit.cell, positional, keywords, has_star_args, roots=roots)


def settings(unit: SourceUnit, names: NameResolver) -> Iterator[Call]:
    """Yield each assignment `package.name = value` as a call with the value as its argument."""
    for node in unit.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and (full := names.qualified_name(target)):
                    yield Call(
                        full,
                        unit.file,
                        node.lineno,
                        unit.cell,
                        (_argument_value(node.value, names),),
                        is_assignment=True,
                    )


def _argument_value(node: ast.AST, names: NameResolver) -> ArgumentValue:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str | None):
        return ArgumentValue(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        return ArgumentValue(-number) if isinstance(number, int | float) else ArgumentValue(known=False)
    if isinstance(node, _LITERALS):
        return ArgumentValue(name="[]")
    is_call = isinstance(node, ast.Call)
    if full := names.qualified_name(node.func if isinstance(node, ast.Call) else node):
        return ArgumentValue(name=f"{full}()" if is_call else full)
    return ArgumentValue(known=False)


def environment(unit: SourceUnit) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each assignment os.environ["NAME"] = "VALUE", and of os.environ.setdefault."""
    for node in unit.nodes:
        pairs: list[tuple[ast.AST, ast.AST]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target.slice, node.value) for target in node.targets if _is_environ_item(target)]  # type: ignore[attr-defined]
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("environ.setdefault") and len(node.args) == 2:
            pairs = [(node.args[0], node.args[1])]
        for key, value in pairs:
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                yield str(key.value), str(value.value)


def _is_environ_item(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and dotted(node.value).endswith("environ")
