"""The order of sets, which no function tells: the user's code is compiled with a question around all that it iterates.

``for x in E``, comprehensions, calls such as ``list(E)``, ``",".join(E)``, ``E.pop()``, ``hash(E)``: E is handed to a
function that notes the order of a set, and gives it sorted where the pin holds. ``numpy.ndarray(shape)``, which is a
type and gives memory as it is, is asked the same way. Lines stay as they are.
"""

import ast
import builtins
import importlib.machinery
import re
import zlib

from .kinds.addresses import Addresses
from .kinds.hash_seed import HashSeed
from .kinds.memory import Memory

_ITERATING = frozenset(
    (
        "list tuple enumerate iter next map filter zip max min sum array tensor join extend fromkeys Counter "
        "chain sorted dict OrderedDict constant from_iterable asarray fromiter sample choice choices cycle "
        "islice"
    ).split()
)
_ORDER, _HASH, _POP = "__tfdet_order__", "__tfdet_hash__", "__tfdet_pop__"
_ID, _ARRAY = "__tfdet_id__", "__tfdet_array__"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_KEPT = 200  # elements of a set's order


class UserSets(object):
    """interposer: of this process."""

    def __init__(self, interposer):
        self._interposer = interposer
        self._numbers = {}  # address: (number, object), of objects whose id() was pinned

    def open(self):
        setattr(builtins, _ORDER, self._order)
        setattr(builtins, _HASH, self._hash)
        setattr(builtins, _POP, self._pop)
        setattr(builtins, _ID, self._id)
        setattr(builtins, _ARRAY, self._array)
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
        tree = ast.parse(source, path)
        questions = _Questions(with_id=not _assigns_id(tree))
        return compile(questions.visit(tree), path, "exec", dont_inherit=True)

    def _order(self, value):
        if type(value) not in (set, frozenset):
            return value
        place = self._interposer.place()
        kind = Addresses.name if any(map(_is_hashed_by_address, value)) else HashSeed.name
        held = self._interposer.holds(kind, place)
        self._interposer.note(kind, place, "a set's order", list(value)[:_KEPT], held)
        return sorted(value, key=_sort_key) if held else value

    def _id(self, value):
        place = self._interposer.place()
        held = self._interposer.holds(Addresses.name, place)
        given = id(value)
        if held:  # kept, so that no other object gets its address
            given = self._numbers.setdefault(id(value), (len(self._numbers), value))[0]
        self._interposer.note(Addresses.name, place, "id()", given, held)
        return given

    def _array(self, value):
        if type(value).__module__ != "numpy" or type(value).__name__ != "ndarray":
            return value
        place = self._interposer.place()
        held = self._interposer.holds(Memory.name, place)
        if held:
            value.fill(0)
        self._interposer.note(Memory.name, place, "ndarray", None, held)
        return value

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


def _is_hashed_by_address(one):
    return type(one).__hash__ is object.__hash__


def _sort_key(one):
    """By its value; of an object without one, by what it holds."""
    texts = [repr(one), repr(sorted(getattr(one, "__dict__", {}).items(), key=str))]
    return (type(one).__name__,) + tuple(_ADDRESS.sub("", text) for text in texts)


def _assigns_id(tree):
    """Does the program give the name `id` another meaning?"""
    return any("id" in _assigned_names(node) for node in ast.walk(tree))


def _assigned_names(node):
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    if isinstance(node, ast.alias):
        return (node.asname or node.name,)
    return (node.name,) if isinstance(node, ast.FunctionDef) else ()


class _Questions(ast.NodeTransformer):
    """with_id: is the name `id` the built-in function's?"""

    def __init__(self, with_id):
        self._with_id = with_id

    def visit_Name(self, node):
        if self._with_id and node.id == "id" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Name(_ID, ast.Load()), node)
        return node

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
        if name == "ndarray" and len(node.args) < 3 and not any(one.arg in (None, "buffer") for one in node.keywords):
            return self._ask(node, _ARRAY)
        if name in _ITERATING:
            node.args = [one if isinstance(one, ast.Starred) else self._ask(one) for one in node.args]
        return node
