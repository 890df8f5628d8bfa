"""Static analysis of uninitialized memory in PyTorch programs: whether it is read before it is written.

The analysis follows a value through one unit, a file or a notebook cell, from the call that allocates it (such as
torch.empty) to its uses.  The result is `read` only if a read certainly comes first; it is `unknown` for memory that is
passed to other code or written in part.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

# written: before any read.  unread: nothing uses the values.  Neither can make a run differ.
MemoryUse = Literal["written", "unread", "read", "unknown"]


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of functions, methods and attributes, by what they do with the memory of a tensor.
_ALLOCATORS = _split("empty empty_like empty_strided empty_permuted new_empty new_empty_strided")
_CLASSES = _split("Tensor FloatTensor DoubleTensor HalfTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor")
_SIZE_CALLS = _split("len int size numel dim")
_WRITERS = _split(
    "fill_ zero_ copy_ set_ normal_ uniform_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_"
)
_INITIALIZERS = "torch.nn.init."
_ALIASING_METHODS = _split(
    "to cuda cpu float double half bfloat16 requires_grad_ detach detach_ view view_as reshape t transpose permute "
    "contiguous pin_memory squeeze unsqueeze share_memory_ clone flatten"
)
_ALIASING_ATTRIBUTES = _split("data T mT")
_WRAPPERS = _split("Parameter Buffer")
_REGISTRATIONS = _split("register_parameter register_buffer")
_VALUE_INDEPENDENT = _split(
    "shape size dtype device layout ndim dim numel nelement stride element_size itemsize data_ptr is_contiguous "
    "requires_grad names zeros_like ones_like full_like rand_like randn_like empty_like randint_like new_empty "
    "new_zeros new_ones new_full len type isinstance"
)
_READERS = _split(
    "sum mean prod max min amax amin item tolist abs exp log sqrt pow add sub mul div matmul mm bmm mv dot norm std "
    "var softmax log_softmax relu sigmoid tanh cumsum argmax argmin sort all any linear where cat stack einsum"
)
_MAX_DEPTH = 20  # expressions and names through which a value is followed


class MemoryUseAnalysis:
    """Finds the use of the memory that the calls of one unit allocate.

    parents: {node of `tree`: its parent}.  qualified_name: see NameResolver.qualified_name.
    """

    def __init__(
        self, tree: ast.AST, parents: Mapping[ast.AST, ast.AST], qualified_name: Callable[[ast.AST], str]
    ) -> None:
        self._tree, self._parents, self._qualified_name = tree, parents, qualified_name

    def use_of_call(self, call: ast.Call, name: str) -> MemoryUse | None:
        """Return the use of the memory that a call leaves uninitialized; None if it is no allocator.

        torch.Tensor(x), which copies x, gives `unread`.
        """
        module, _, last = name.rpartition(".")
        if module == "torch" and last in _CLASSES:
            return self.use_of(call) if _takes_sizes(call) else "unread"
        return self.use_of(call) if last in _ALLOCATORS else None

    def use_of(self, node: ast.AST, depth: int = 0) -> MemoryUse:
        """Return the use of the value of an expression.  depth: expressions and names that were followed to it."""
        parent = self._parents.get(node)
        if depth > _MAX_DEPTH or parent is None:
            return "unknown"
        if isinstance(parent, ast.Attribute):
            return self._use_of_member(parent, depth)
        if isinstance(parent, ast.keyword):
            return self._use_of_argument(node, parent.arg, self._parents[parent], depth)
        if isinstance(parent, ast.Call):
            return self._use_of_argument(node, None, parent, depth)
        return self._use_in_statement(node, parent, depth)

    def _use_in_statement(self, node: ast.AST, parent: ast.AST, depth: int) -> MemoryUse:
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and parent.value is node:
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return _merge([self._use_of_target(target, parent, depth) for target in targets])
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._use_of_subscript(parent)
        if isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign):
            return "read"
        return "unread" if isinstance(parent, ast.Expr) else "unknown"

    def _use_of_member(self, member: ast.Attribute, depth: int) -> MemoryUse:
        outer = self._parents[member]
        if not (isinstance(outer, ast.Call) and outer.func is member):
            if member.attr in _ALIASING_ATTRIBUTES:
                return self.use_of(member, depth + 1)
            return "unread" if member.attr in _VALUE_INDEPENDENT else "unknown"
        if member.attr in _WRITERS:
            return "written"
        if member.attr in _ALIASING_METHODS:
            return self.use_of(outer, depth + 1)
        if member.attr in _READERS or member.attr.removesuffix("_") in _READERS:
            return "read"
        return "unread" if member.attr in _VALUE_INDEPENDENT else "unknown"

    def _use_of_argument(self, node: ast.AST, keyword: str | None, call: ast.AST, depth: int) -> MemoryUse:
        if not isinstance(call, ast.Call):  # a keyword of a class statement: class A(x)
            return "unknown"
        full = self._qualified_name(call.func)
        name = full.rpartition(".")[2] or getattr(call.func, "attr", None) or getattr(call.func, "id", "")
        if keyword == "out" or (full.startswith(_INITIALIZERS) and (keyword or call.args[0] is node)):
            return "written"
        if name in _WRAPPERS:
            return self.use_of(call, depth + 1)
        if name in _REGISTRATIONS:
            return self._use_of_registered(call, depth)
        if name in _VALUE_INDEPENDENT:
            return "unread"
        return "read" if full.startswith("torch.") and name in _READERS else "unknown"

    def _use_of_registered(self, call: ast.Call, depth: int) -> MemoryUse:
        """Return the use of the argument of self.register_buffer("name", ...), which becomes self.name."""
        first = call.args[0] if call.args else None
        if isinstance(call.func, ast.Attribute) and isinstance(first, ast.Constant) and isinstance(first.value, str):
            return self._use_of_attribute(
                ast.dump(ast.Attribute(call.func.value, first.value, ast.Load())), call, depth
            )
        return "unknown"

    def _use_of_target(self, target: ast.AST, statement: ast.AST, depth: int) -> MemoryUse:
        if isinstance(target, ast.Attribute):
            return self._use_of_attribute(_name_key(target), statement, depth)
        if isinstance(target, ast.Name):
            return self._use_of_name(target, statement, depth)
        return "unknown"

    def _use_of_name(self, target: ast.Name, statement: ast.AST, depth: int) -> MemoryUse:
        """Return the first relevant use after an assignment; `unknown` if a nested function uses the name."""
        scope = self._enclosing(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        end = (statement.end_lineno, statement.end_col_offset)  # type: ignore[attr-defined]
        for load in self._loads(_name_key(target), scope):
            if self._enclosing(load, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) is not scope:
                return "unknown"
            if (load.lineno, load.col_offset) < end:  # type: ignore[attr-defined]
                continue
            if (memory_use := self.use_of(load, depth + 1)) != "unread":
                return memory_use
        return "unread"

    def _use_of_attribute(self, name: str, statement: ast.AST, depth: int) -> MemoryUse:
        """Return `written` if anything in its class writes an attribute, else `unknown`: other code may write it."""
        scope = self._enclosing(statement, ast.ClassDef)
        memory_uses = {self.use_of(load, depth + 1) for load in self._loads(name, scope)}
        return "written" if "written" in memory_uses or self._writes_parameters(scope) else "unknown"

    def _writes_parameters(self, scope: ast.AST) -> bool:
        """Return whether a class writes all its parameters: for p in self.parameters(): p.data.uniform_()."""
        return any(
            isinstance(loop, ast.For)
            and ".parameters()" in ast.unparse(loop.iter)
            and isinstance(loop.target, ast.Name)
            and any(self.use_of(load) == "written" for load in self._loads(_name_key(loop.target), loop))
            for loop in ast.walk(scope)
        )

    def _use_of_subscript(self, subscript: ast.Subscript) -> MemoryUse:
        """Return `written` for x[:] = ... or x[...] = ..., else `unknown`, as only a part is read or written."""
        if not isinstance(subscript.ctx, ast.Store):
            return "unknown"
        index = subscript.slice
        is_full_slice = isinstance(index, ast.Slice) and not (index.lower or index.upper or index.step)
        return "written" if is_full_slice or (isinstance(index, ast.Constant) and index.value is ...) else "unknown"

    def _loads(self, name: str, scope: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes that read a name, in source order; an augmented assignment counts as a read."""
        loads = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.Name | ast.Attribute)
            and _name_key(node) == name
            and (isinstance(node.ctx, ast.Load) or isinstance(self._parents[node], ast.AugAssign))
        ]
        yield from sorted(loads, key=lambda node: (node.lineno, node.col_offset))

    def _enclosing(self, node: ast.AST, node_type: object) -> ast.AST:
        """Return the innermost ancestor of a node type (functions or a class), or the module."""
        ancestor = self._parents.get(node)
        while ancestor is not None and not isinstance(ancestor, node_type):  # type: ignore[arg-type]
            ancestor = self._parents.get(ancestor)
        return self._tree if ancestor is None else ancestor


def _takes_sizes(call: ast.Call) -> bool:
    """Return whether a constructor gets sizes: torch.Tensor(3, 4) is uninitialized, torch.Tensor(x) copies x."""
    return len(call.args) > 1 or any(isinstance(argument, ast.Starred) or _is_size(argument) for argument in call.args)


def _is_size(node: ast.AST) -> bool:
    """Return whether an expression is certainly a number; a name alone may be anything."""
    if isinstance(node, ast.BinOp):
        return _is_size(node.left) or _is_size(node.right)
    if isinstance(node, ast.Subscript):  # x.shape[0]
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return (getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in _SIZE_CALLS
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _merge(memory_uses: list[MemoryUse]) -> MemoryUse:
    """Return the use of one value under several names: `read` if any reads it, else `written`, else `unknown`."""
    return next((memory_use for memory_use in ("read", "written", "unknown") if memory_use in memory_uses), "unread")


def _name_key(node: ast.AST) -> str:
    """Return a text that is equal for all uses of a name or attribute; empty for other nodes."""
    if isinstance(node, ast.Attribute):
        return ast.dump(ast.Attribute(node.value, node.attr, ast.Load()))
    return ast.dump(ast.Name(node.id, ast.Load())) if isinstance(node, ast.Name) else ""
