"""The order of sets, which no function call reveals: the user's code is compiled with a call around each iterable.

In ``for x in E``, comprehensions, calls such as ``list(E)``, ``",".join(E)``, ``E.pop()`` and ``hash(E)``, the value
of E is passed to a function. It notes the order of a set, and returns it sorted where the pin holds. So are the texts
of ``repr(E)``, ``str(E)``, ``f"{E}"`` and ``"..." % E``, whose addresses are replaced by numbers. (A pin gives the
program the same value in every run, for one kind of nondeterminism, everywhere or at some lines.)
``numpy.ndarray(shape)``, a class that returns uninitialized memory, is wrapped in the same way. Line numbers do not
change.
"""

import ast
import builtins
import gc
import importlib.machinery
import re
import sys
import weakref
import zlib

from .kinds.addresses import Addresses
from .kinds.hash_seed import HashSeed
from .kinds.memory import Memory

_ITERATING = frozenset(  # names of functions that iterate over an argument or depend on its order
    (
        "list tuple enumerate iter next map filter zip max min sum array tensor join extend fromkeys Counter "
        "chain sorted dict OrderedDict constant from_iterable asarray fromiter sample choice choices cycle "
        "islice"
    ).split()
)
_ORDER, _HASH, _POP = "__tfdet_order__", "__tfdet_hash__", "__tfdet_pop__"
_ID, _ARRAY = "__tfdet_id__", "__tfdet_array__"
_TEXT, _REPR, _STR = "__tfdet_text__", "__tfdet_repr__", "__tfdet_str__"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_KEYS = {"repr": _REPR, "str": _STR, "hash": _HASH}  # functions as sort keys
_AT = " at 0x"  # in the text of an object that has none of its own
SQL_TIME = re.compile(r"""['"]now['"]|\bcurrent_(?:timestamp|date|time)\b""", re.IGNORECASE)
_KEPT = 200  # elements of a set's order


class UserSets(object):
    """The functions that the compiled code calls.

    interposer: of this process; it knows the user's line (the place), and whether a pin holds there.
    """

    def __init__(self, interposer):
        self._interposer = interposer
        self.asks_sql_for_time = False  # whether a text of the program may
        self._numbers = {}  # {address: (number, object)} of objects whose id() was pinned

    def open(self):
        setattr(builtins, _ORDER, self._order)
        setattr(builtins, _HASH, self._hash)
        setattr(builtins, _POP, self._pop)
        setattr(builtins, _ID, self._id)
        setattr(builtins, _ARRAY, self._array)
        setattr(builtins, _TEXT, self._text)
        setattr(builtins, _REPR, lambda value: self._text(repr(value)))
        setattr(builtins, _STR, lambda value: self._text(str(value)))
        loader = importlib.machinery.SourceFileLoader
        original, is_user, compile_text = loader.get_code, self._interposer.is_user, self.compile

        def get_code(loader, fullname):  # the user's .pyc files are neither read nor written
            path = loader.get_filename(fullname)
            return compile_text(loader.get_data(path), path) if is_user(path) else original(loader, fullname)

        loader.get_code = get_code  # type: ignore[method-assign]
        self._interposer.imports.add({"runpy": self._hook_runpy})

    def _hook_runpy(self, module):
        """Compile what spawned processes of multiprocessing run as the main module."""
        original = module._get_code_from_file

        def get_code_from_file(*args):
            path, result = args[-1], original(*args)
            if not self._interposer.is_user(path):
                return result
            with open(path, "rb") as source:
                code = self.compile(source.read(), path)
            return (code,) + result[1:] if isinstance(result, tuple) else code

        module._get_code_from_file = get_code_from_file

    def compile(self, source, path):
        """Compile as the built-in compile() does, with the calls added. source: text or bytes."""
        text = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
        self.asks_sql_for_time = self.asks_sql_for_time or bool(SQL_TIME.search(text))
        tree = ast.parse(source, path)
        transformer = _CallInserter(with_id=not _assigns_id(tree))
        return compile(transformer.visit(tree), path, "exec", dont_inherit=True)

    def _order(self, value):
        if type(value) not in (set, frozenset, weakref.WeakSet):
            return value
        place, elements = self._interposer.place(), list(value)
        kind = Addresses.name if any(map(_is_hashed_by_address, elements)) else HashSeed.name
        is_held = self._interposer.is_pinned(kind, place)
        self._interposer.note(kind, place, "a set's order", elements[:_KEPT], is_held)
        return _sorted(elements) if is_held else value

    def _id(self, value):
        place = self._interposer.place()
        is_held = self._interposer.is_pinned(Addresses.name, place)
        number = id(value)
        if is_held:  # the object is kept alive, so that no other object gets its address
            number = self._numbers.setdefault(id(value), (len(self._numbers), value))[0]
        self._interposer.note(Addresses.name, place, "id()", number, is_held)
        return number

    def _text(self, text):
        if type(text) is not str or _AT not in text:
            return text
        place = self._interposer.place()
        is_held = self._interposer.is_pinned(Addresses.name, place)
        addresses = dict.fromkeys(_ADDRESS.findall(text))
        self._interposer.note(Addresses.name, place, "an object's text", list(addresses)[:_KEPT], is_held)
        numbers = {address: "0x{:x}".format(number) for number, address in enumerate(addresses)}
        return _ADDRESS.sub(lambda match: numbers[match.group()], text) if is_held else text

    def _array(self, value):
        if type(value).__module__ != "numpy" or type(value).__name__ != "ndarray":
            return value
        place = self._interposer.place()
        is_held = self._interposer.is_pinned(Memory.name, place)
        if is_held:
            value.fill(0)
        self._interposer.note(Memory.name, place, "ndarray", None, is_held)
        return value

    def _hash(self, value):
        place = self._interposer.place()
        kind = Addresses.name if _has_address(value) else HashSeed.name
        is_held = self._interposer.is_pinned(kind, place)
        text = repr(_sort_key(value)) if kind == Addresses.name else _stable_repr(value)
        number = zlib.crc32(text.encode("utf-8", "surrogateescape")) if is_held else hash(value)
        self._interposer.note(kind, place, "hash()", number, is_held)
        return number

    def _pop(self, value):
        if type(value) is not set or not value:
            return value.pop()
        element = next(iter(self._order(value)))
        value.remove(element)
        return element


def _has_address(value):
    """Return whether the hash of a value, or of an element of a tuple, comes from an address."""
    if type(value) in (tuple, frozenset):
        return any(map(_has_address, value))
    return _is_hashed_by_address(value)


def _is_hashed_by_address(value):
    return type(value).__hash__ is object.__hash__


def _sorted(values):
    """Return values in an order that does not depend on addresses: by value, and those that are equal by their age."""
    keys = {id(value): _sort_key(value) for value in values}
    if len(set(keys.values())) < len(keys):
        ages = _ages(keys)
        return sorted(values, key=lambda value: (keys[id(value)], ages.get(id(value), 0)))
    return sorted(values, key=lambda value: keys[id(value)])


def _ages(addresses):
    """Return {address: number} of objects, the oldest first.  The garbage collector keeps each generation in order."""
    objects = gc.get_objects()
    if sys.version_info >= (3, 8):
        objects = [value for number in (2, 1, 0) for value in gc.get_objects(generation=number)]  # novm
    return {id(value): number for number, value in enumerate(objects) if id(value) in addresses}


def _sort_key(value):
    """Return a sort key by value; for an object without a value, by its attributes."""
    texts = [_stable_repr(value), repr(sorted(getattr(value, "__dict__", {}).items(), key=str))]
    return (type(value).__name__,) + tuple(_ADDRESS.sub("", text) for text in texts)


def _stable_repr(value):
    """Return repr(value), with the elements of a set in the order of their own texts; also in tuples."""
    if type(value) is tuple:
        return "({})".format(", ".join(map(_stable_repr, value)))
    if type(value) is frozenset:
        return "{{{}}}".format(", ".join(sorted(map(_stable_repr, value))))
    return repr(value)


def _assigns_id(tree):
    """Return whether the program assigns the name `id`."""
    return any("id" in _assigned_names(node) for node in ast.walk(tree))


def _assigned_names(node):
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    if isinstance(node, ast.alias):
        return (node.asname or node.name,)
    return (node.name,) if isinstance(node, ast.FunctionDef) else ()


class _CallInserter(ast.NodeTransformer):
    """The transformer that adds the calls. with_id: whether the name `id` means the built-in function."""

    def __init__(self, with_id):
        self._with_id = with_id

    def visit_Name(self, node):
        if self._with_id and node.id == "id" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Name(_ID, ast.Load()), node)
        return node

    def _wrap_call(self, node, name=_ORDER):
        call = ast.Call(ast.Name(name, ast.Load()), [node], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_JoinedStr(self, node):
        self.generic_visit(node)
        return self._wrap_call(node, _TEXT)

    def visit_FormattedValue(self, node):
        node.value = self.visit(node.value)  # not the format behind it, which must stay a text
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        is_format = isinstance(node.op, ast.Mod) and isinstance(getattr(node.left, "value", None), str)
        return self._wrap_call(node, _TEXT) if is_format else node

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = self._wrap_call(node.iter)
        return node

    def visit_comprehension(self, node):
        self.generic_visit(node)
        if not node.is_async:
            node.iter = self._wrap_call(node.iter)
        return node

    def visit_Starred(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._wrap_call(node.value)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)
        if name in ("str", "repr", "format") and (name == "format" or isinstance(node.func, ast.Name)):
            return self._wrap_call(node, _TEXT)
        for keyword in node.keywords:
            if keyword.arg == "key" and getattr(keyword.value, "id", None) in _KEYS:
                keyword.value.id = _KEYS[keyword.value.id]
        if name == "hash" and isinstance(node.func, ast.Name) and len(node.args) == 1:
            return ast.copy_location(self._wrap_call(node.args[0], _HASH), node)
        if name == "pop" and not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
            return ast.copy_location(self._wrap_call(node.func.value, _POP), node)
        has_buffer = len(node.args) >= 3 or any(keyword.arg in (None, "buffer") for keyword in node.keywords)
        if name == "ndarray" and not has_buffer:
            return self._wrap_call(node, _ARRAY)
        if name in _ITERATING:
            node.args = [
                argument if isinstance(argument, ast.Starred) else self._wrap_call(argument) for argument in node.args
            ]
        return node
