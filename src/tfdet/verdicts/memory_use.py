"""What becomes of memory that nobody has written: is it read so, or written first?

The text of one file is followed, from the call that allocates to what is done with its value. An error is said only
where a read comes first; what is handed to others, or written in part, may be either.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

MemoryUse = Literal["written", "unread", "read", "unknown"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAKERS = _words("empty empty_like empty_strided empty_permuted new_empty new_empty_strided")
_CLASSES = _words("Tensor FloatTensor DoubleTensor HalfTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor")
_SIZE_CALLS = _words("len int size numel dim")
_WRITERS = _words(
    "fill_ zero_ copy_ set_ normal_ uniform_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_"
)
_INITIALIZERS = "torch.nn.init."
_SAME = _words(
    "to cuda cpu float double half bfloat16 requires_grad_ detach detach_ view view_as reshape t transpose permute "
    "contiguous pin_memory squeeze unsqueeze share_memory_ clone flatten"
)
_SAME_MEMBERS = _words("data T mT")
_HOLDERS = _words("Parameter Buffer")
_REGISTERS = _words("register_parameter register_buffer")
_SHAPES = _words(
    "shape size dtype device layout ndim dim numel nelement stride element_size itemsize data_ptr is_contiguous "
    "requires_grad names zeros_like ones_like full_like rand_like randn_like empty_like randint_like new_empty "
    "new_zeros new_ones new_full len type isinstance"
)
_READERS = _words(
    "sum mean prod max min amax amin item tolist abs exp log sqrt pow add sub mul div matmul mm bmm mv dot norm std "
    "var softmax log_softmax relu sigmoid tanh cumsum argmax argmin sort all any linear where cat stack einsum"
)
_DEEP = 20  # expressions and names that a value is followed through


class MemoryUseAnalysis:
    """Of the values of one unit. full: the imported name of an expression, as NameResolver.qualified_name has it."""

    def __init__(self, tree: ast.AST, parents: Mapping[ast.AST, ast.AST], full: Callable[[ast.AST], str]) -> None:
        self._tree, self._parents, self._full = tree, parents, full

    def of_call(self, call: ast.Call, name: str) -> MemoryUse | None:
        """Of the memory that a call of this name leaves unwritten; None where it is no such call."""
        module, _, last = name.rpartition(".")
        if module == "torch" and last in _CLASSES:
            return self.of(call) if _takes_sizes(call) else "unread"
        return self.of(call) if last in _MAKERS else None

    def of(self, node: ast.AST, deep: int = 0) -> MemoryUse:
        """Of the value of this expression."""
        parent = self._parents.get(node)
        if deep > _DEEP or parent is None:
            return "unknown"
        if isinstance(parent, ast.Attribute):
            return self._of_member(parent, deep)
        if isinstance(parent, ast.keyword):
            return self._of_argument(node, parent.arg, self._parents[parent], deep)
        if isinstance(parent, ast.Call):
            return self._of_argument(node, None, parent, deep)
        return self._of_statement(node, parent, deep)

    def _of_statement(self, node: ast.AST, parent: ast.AST, deep: int) -> MemoryUse:
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is node:
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return _first([self._of_target(target, parent, deep) for target in targets])
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._of_part(parent)
        if isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign):
            return "read"
        return "unread" if isinstance(parent, ast.Expr) else "unknown"

    def _of_member(self, member: ast.Attribute, deep: int) -> MemoryUse:
        outer = self._parents[member]
        if not (isinstance(outer, ast.Call) and outer.func is member):
            if member.attr in _SAME_MEMBERS:
                return self.of(member, deep + 1)
            return "unread" if member.attr in _SHAPES else "unknown"
        if member.attr in _WRITERS:
            return "written"
        if member.attr in _SAME:
            return self.of(outer, deep + 1)
        if member.attr in _READERS or member.attr.removesuffix("_") in _READERS:
            return "read"
        return "unread" if member.attr in _SHAPES else "unknown"

    def _of_argument(self, node: ast.AST, keyword: str | None, call: ast.AST, deep: int) -> MemoryUse:
        if not isinstance(call, ast.Call):  # of a class: class A(x)
            return "unknown"
        full = self._full(call.func)
        name = full.rpartition(".")[2] or getattr(call.func, "attr", None) or getattr(call.func, "id", "")
        if keyword == "out" or (full.startswith(_INITIALIZERS) and (keyword or call.args[0] is node)):
            return "written"
        if name in _HOLDERS:
            return self.of(call, deep + 1)
        if name in _REGISTERS:
            return self._registered(call, deep)
        if name in _SHAPES:
            return "unread"
        return "read" if full.startswith("torch.") and name in _READERS else "unknown"

    def _registered(self, call: ast.Call, deep: int) -> MemoryUse:
        """self.register_buffer("name", ...): it is self.name from there on."""
        first = call.args[0] if call.args else None
        if isinstance(call.func, ast.Attribute) and isinstance(first, ast.Constant) and isinstance(first.value, str):
            return self._of_attribute(ast.dump(ast.Attribute(call.func.value, first.value, ast.Load())), call, deep)
        return "unknown"

    def _of_target(self, target: ast.AST, statement: ast.AST, deep: int) -> MemoryUse:
        if isinstance(target, ast.Attribute):
            return self._of_attribute(_named(target), statement, deep)
        if isinstance(target, ast.Name):
            return self._of_name(target, statement, deep)
        return "unknown"

    def _of_name(self, target: ast.Name, statement: ast.AST, deep: int) -> MemoryUse:
        """The first use behind it that tells; a use within a function is of no known time."""
        scope = self._around(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        end = (statement.end_lineno, statement.end_col_offset)  # type: ignore[attr-defined]
        for use in self._uses(_named(target), scope):
            if self._around(use, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) is not scope:
                return "unknown"
            if (use.lineno, use.col_offset) < end:  # type: ignore[attr-defined]
                continue
            if (fate := self.of(use, deep + 1)) != "unread":
                return fate
        return "unread"

    def _of_attribute(self, name: str, statement: ast.AST, deep: int) -> MemoryUse:
        """Who else may write it, and when, is not known: it is written if anything in its class does."""
        scope = self._around(statement, ast.ClassDef)
        fates = {self.of(use, deep + 1) for use in self._uses(name, scope)}
        return "written" if "written" in fates or self._writes_parameters(scope) else "unknown"

    def _writes_parameters(self, scope: ast.AST) -> bool:
        """for p in self.parameters(): p.data.uniform_()."""
        return any(
            isinstance(loop, ast.For)
            and ".parameters()" in ast.unparse(loop.iter)
            and isinstance(loop.target, ast.Name)
            and any(self.of(use) == "written" for use in self._uses(_named(loop.target), loop))
            for loop in ast.walk(scope)
        )

    def _of_part(self, part: ast.Subscript) -> MemoryUse:
        """x[:] = ... writes all of it, x[2] = ... some; a part that is read shows some of it."""
        if not isinstance(part.ctx, ast.Store):
            return "unknown"
        inside = part.slice
        whole = isinstance(inside, ast.Slice) and not (inside.lower or inside.upper or inside.step)
        return "written" if whole or (isinstance(inside, ast.Constant) and inside.value is ...) else "unknown"

    def _uses(self, name: str, scope: ast.AST) -> Iterator[ast.AST]:
        """As one reads them; an assignment with an operator reads first."""
        found = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.Name | ast.Attribute)
            and _named(node) == name
            and (isinstance(node.ctx, ast.Load) or isinstance(self._parents[node], ast.AugAssign))
        ]
        yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def _around(self, node: ast.AST, kind: object) -> ast.AST:
        """The innermost function, or class, or the whole text."""
        at = self._parents.get(node)
        while at is not None and not isinstance(at, kind):  # type: ignore[arg-type]
            at = self._parents.get(at)
        return self._tree if at is None else at


def _takes_sizes(call: ast.Call) -> bool:
    """torch.Tensor(3, 4) is memory of that shape, torch.Tensor(x) has the values of x."""
    return len(call.args) > 1 or any(isinstance(one, ast.Starred) or _is_size(one) for one in call.args)


def _is_size(node: ast.AST) -> bool:
    """A number, as far as the text shows; a name alone may be anything."""
    if isinstance(node, ast.BinOp):
        return _is_size(node.left) or _is_size(node.right)
    if isinstance(node, ast.Subscript):  # x.shape[0]
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return (getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in _SIZE_CALLS
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _first(fates: list[MemoryUse]) -> MemoryUse:
    """Of one value under several names: read by any, or written by any."""
    return next((fate for fate in ("read", "written", "unknown") if fate in fates), "unread")


def _named(node: ast.AST) -> str:
    """The same for all uses of a name."""
    if isinstance(node, ast.Attribute):
        return ast.dump(ast.Attribute(node.value, node.attr, ast.Load()))
    return ast.dump(ast.Name(node.id, ast.Load())) if isinstance(node, ast.Name) else ""
