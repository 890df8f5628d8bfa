"""What an op's schema says of it."""

import torch

from . import collectives
from . import internals as pt

# They give memory that nobody has written yet, and ask of what they get its form alone; and those that keep some of it.
_EMPTY = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())
_RESIZE = frozenset(("resize_", "resize_as_"))
# They write what they are given without reading it; so does whatever writes into an `out`.
_OVERWRITES = frozenset("""copy_ fill_ zero_ uniform_ normal_ random_ bernoulli_ exponential_ geometric_ cauchy_
    log_normal_ _foreach_zero_ _foreach_copy_""".split())
_KINDS = (bool, int, float, complex, str)
_NUMBERS = frozenset((int, float, complex))
_PLAIN = frozenset(_KINDS + (type(None),))
# In what there is no number.
_NOTHING = pt.TENSORS | frozenset((bool, str, type(None), torch.dtype, torch.device, torch.layout))
_HARMLESS_TYPES = ("Tensor", "number", "Scalar", "int", "float", "bool", "str", "ScalarType", "Layout", "Device",
                   "MemoryFormat", "SymInt")
_NOT_ALONE = ("from_file", "record_stream", "set_", "print")


class OpSchema(object):
    """name; kind, as definitions have it; is_view: are its results other views of what it gets; is_empty: does it give
    memory that nobody has written; is_async: is its result written only later, by another op or by
    another process?; reads_all: does it ask for the content of all that it gets?"""

    def __init__(self, function):
        schema = function._schema
        self.name = str(function)
        base = schema.name.partition("::")[2]
        self.kind = "random" if torch.Tag.nondeterministic_seeded in function.tags else "op"
        self.is_empty = base in _EMPTY | _RESIZE
        self.is_async = self.is_empty or collectives.is_collective(schema)
        places = [(number, one.name, bool(one.kwarg_only)) for number, one in enumerate(schema.arguments)]
        self._written = [place for place, one in zip(places, schema.arguments)
                         if one.alias_info is not None and one.alias_info.is_write]
        if base == "set_":  # it shows other memory through the same tensor
            self._written = []
        self._unread = self._written if base in _OVERWRITES or any(kwarg for _, _, kwarg in self._written) else \
            places if base in _EMPTY else []
        if collectives.is_collective(schema):
            self._written = [one for one in places if collectives.writes(base, one[1])]
            self._unread = [one for one in places if collectives.ignores_argument(base, one[1])]
        self._from_root = base == "broadcast_"
        self.reads_all = not self._unread and not self._from_root
        self.is_view = not self._written and any(one.alias_info is not None for one in schema.returns)

    def written_tensors(self, args, kwargs):
        """The tensors that it writes in place."""
        return _at(self._written, args, kwargs)

    def ignored_inputs(self, args, kwargs):
        """The tensors that it gets, and whose content it does not ask for."""
        if self._from_root and not collectives.is_root(args):
            return self.written_tensors(args, kwargs)
        return _at(self._unread, args, kwargs)

    def outputs(self, args, kwargs, result):
        """The tensors that it has given: what it has written in place, then what is new."""
        new = pt.tensors_in(result)
        if not self._written:
            return new
        written = self.written_tensors(args, kwargs)
        if not written:
            return new
        mine = {id(one) for one in written}
        return written + [one for one in new if id(one) not in mine]


def _at(places, args, kwargs):
    """The tensors among these arguments."""
    if not places:
        return []
    found = [kwargs.get(name) if name in kwargs else args[number] if number < len(args) and not kwarg else None
             for number, name, kwarg in places]
    return pt.tensors_in(found)


class OpSchemas(object):
    """Each asked once."""

    def __init__(self):
        self._known = {}  # by id, as PyTorch's own hash takes a call: (function, which keeps it, Op)

    def find(self, function):
        found = self._known.get(id(function))
        if found is None:
            found = self._known[id(function)] = function, OpSchema(function)
        return found[1]


def plain_arguments(value):
    """The numbers and words among an op's arguments, with their places."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in pt.TENSORS:
        return "tensor"
    if isinstance(value, (list, tuple)):
        return [plain_arguments(one) for one in value]
    if isinstance(value, dict):
        return {name: plain_arguments(one) for name, one in value.items()}
    return "tensor" if isinstance(value, torch.Tensor) else value if isinstance(value, _KINDS) else kind.__name__


def has_numbers(value):
    """Is any of it a number that Python has made?"""
    for one in value:
        kind = type(one)
        if kind in _NUMBERS:
            return True
        if kind not in _NOTHING and (has_numbers(one) if isinstance(one, (list, tuple)) else _is_number(one)):
            return True
    return False


def _is_number(value):
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def resolve(name):
    """The op of a recording: of ATen, and nothing but numbers from numbers. None for any other."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] != "aten" or any(word in parts[1] for word in _NOT_ALONE):
        return None
    try:
        function = getattr(getattr(torch.ops.aten, parts[1]), parts[2])
    except (AttributeError, RuntimeError):
        return None
    schema = function._schema
    types = [str(one.type) for one in list(schema.arguments) + list(schema.returns)]
    return function if schema.returns and all(_is_harmless(one) for one in types) else None


def _is_harmless(kind):
    while kind.startswith(("Optional[", "List[")):
        kind = kind.partition("[")[2].rpartition("]")[0]
    return kind in _HARMLESS_TYPES
