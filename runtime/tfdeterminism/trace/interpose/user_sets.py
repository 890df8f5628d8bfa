"""The order of sets, which no function tells: the user's code is compiled with a question around all that it iterates.

``for x in E``, comprehensions, calls such as ``list(E)``, ``",".join(E)``, ``E.pop()``, ``hash(E)``: E is handed to a
function that notes the order of a set, and gives it sorted where the pin holds. Lines stay as they are.
"""

import ast
import builtins
import importlib.machinery
import zlib

from .kinds.hash_seed import HashSeed

_ITERATING = frozenset(
    (
        "list tuple enumerate iter next map filter zip max min sum array tensor join extend fromkeys Counter "
        "chain sorted dict OrderedDict constant from_iterable asarray fromiter sample choice choices cycle "
        "islice"
    ).split()
)
_ORDER, _HASH, _POP = "__tfdet_order__", "__tfdet_hash__", "__tfdet_pop__"
_KEPT = 200  # elements of a set's order


class UserSets(object):
    """interposer: of this process."""

    def __init__(self, interposer):
        self._interposer = interposer

    def open(self):
        setattr(builtins, _ORDER, self._order)
        setattr(builtins, _HASH, self._hash)
        setattr(builtins, _POP, self._pop)
        loader = importlib.machinery.SourceFileLoader
        original, is_user, compile_text = loader.get_code, self._interposer.is_user, self.compile

        def get_code(loader, fullname):  # neither read from the user's .pyc nor kept there
            path = loader.get_filename(fullname)
            return compile_text(loader.get_data(path), path) if is_user(path) else original(loader, fullname)

        loader.get_code = get_code  # type: ignore[method-assign]
        self._interposer.imports.add({"runpy": self._hook_runpy})

    def _hook_runpy(self, module):
        """What spawned processes of multiprocessing run as the main module."""
        original = module._get_code_from_file

        def get_code_from_file(*args):
            path, found = args[-1], original(*args)
            if not self._interposer.is_user(path):
                return found
            with open(path, "rb") as source:
                code = self.compile(source.read(), path)
            return (code,) + found[1:] if isinstance(found, tuple) else code

        module._get_code_from_file = get_code_from_file

    @staticmethod
    def compile(source, path):
        """As the built-in compile does; source: text or bytes."""
        return compile(_Questions().visit(ast.parse(source, path)), path, "exec", dont_inherit=True)

    def _order(self, value):
        if type(value) not in (set, frozenset):
            return value
        place = self._interposer.place()
        held = self._interposer.holds(HashSeed.name, place)
        self._interposer.note(HashSeed.name, place, "a set's order", list(value)[:_KEPT], held)
        return sorted(value, key=_sort_key) if held else value

    def _hash(self, value):
        place = self._interposer.place()
        held = self._interposer.holds(HashSeed.name, place)
        given = zlib.crc32(repr(value).encode("utf-8", "surrogateescape")) if held else hash(value)
        self._interposer.note(HashSeed.name, place, "hash()", given, held)
        return given

    def _pop(self, value):
        if type(value) is not set or not value:
            return value.pop()
        one = next(iter(self._order(value)))
        value.remove(one)
        return one


def _sort_key(one):
    return type(one).__name__, repr(one)


class _Questions(ast.NodeTransformer):
    def _ask(self, node, name=_ORDER):
        call = ast.Call(ast.Name(name, ast.Load()), [node], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = self._ask(node.iter)
        return node

    def visit_comprehension(self, node):
        self.generic_visit(node)
        if not node.is_async:
            node.iter = self._ask(node.iter)
        return node

    def visit_Starred(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._ask(node.value)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)
        if name == "hash" and isinstance(node.func, ast.Name) and len(node.args) == 1:
            return ast.copy_location(self._ask(node.args[0], _HASH), node)
        if name == "pop" and not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
            return ast.copy_location(self._ask(node.func.value, _POP), node)
        if name in _ITERATING:
            node.args = [one if isinstance(one, ast.Starred) else self._ask(one) for one in node.args]
        return node
