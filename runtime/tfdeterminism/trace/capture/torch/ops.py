"""The facts about an op that follow from its schema."""

import torch

from . import collectives
from . import internals as pt

# Ops that return uninitialized memory and read only the form of their inputs; and ops that leave a part uninitialized.
_EMPTY = frozenset("empty empty_like empty_strided empty_permuted new_empty new_empty_strided".split())
_RESIZE = frozenset(("resize_", "resize_as_"))
# Ops that overwrite their first argument without reading it, as all ops do with an `out`.
_OVERWRITES = frozenset("""copy_ fill_ zero_ uniform_ normal_ random_ bernoulli_ exponential_ geometric_ cauchy_
    log_normal_ _foreach_zero_ _foreach_copy_""".split())
_KINDS = (bool, int, float, complex, str)  # types of arguments that are recorded by value
_NUMBERS = frozenset((int, float, complex))
_PLAIN = frozenset(_KINDS + (type(None),))
# Types of arguments that contain no number.
_NOTHING = pt.TENSORS | frozenset((bool, str, type(None), torch.dtype, torch.device, torch.layout))
_HARMLESS_TYPES = ("Tensor", "number", "Scalar", "int", "float", "bool", "str", "ScalarType", "Layout", "Device",
                   "MemoryFormat", "SymInt")
_NOT_ALONE = ("from_file", "record_stream", "set_", "print")  # parts of names of ops that do more than compute


class OpSchema(object):
    """The facts about an op.

    name: of the overload; kind: "op" or "random", as in definitions; is_view: whether its results are views of its
    inputs; is_empty: whether it returns uninitialized memory; is_written_later: whether another op
    or another process writes its result; reads_all: whether it reads the content of all its inputs.
    """

    def __init__(self, function):
        schema = function._schema
        self.name = str(function)
        base = schema.name.partition("::")[2]
        self.kind = "random" if torch.Tag.nondeterministic_seeded in function.tags else "op"
        self.is_empty = base in _EMPTY | _RESIZE
        self.is_written_later = self.is_empty or collectives.is_collective(schema)
        places = [(number, argument.name, bool(argument.kwarg_only))
                  for number, argument in enumerate(schema.arguments)]
        self._written = [place for place, argument in zip(places, schema.arguments)
                         if argument.alias_info is not None and argument.alias_info.is_write]
        if base == "set_":  # it changes the storage of the tensor, and writes nothing
            self._written = []
        self._unread = self._written if base in _OVERWRITES or any(kwarg for _, _, kwarg in self._written) else \
            places if base in _EMPTY else []
        if collectives.is_collective(schema):
            self._written = [place for place in places if collectives.writes(base, place[1])]
            self._unread = [place for place in places if collectives.ignores_argument(base, place[1])]
        self._from_root = base == "broadcast_"
        self.reads_all = not self._unread and not self._from_root
        self.is_view = not self._written and any(result.alias_info is not None for result in schema.returns)

    def written_tensors(self, args, kwargs):
        """Return the tensors that the op writes in place."""
        return _tensors_at(self._written, args, kwargs)

    def ignored_inputs(self, args, kwargs):
        """Return the input tensors whose content the op does not read."""
        if self._from_root and not collectives.is_root(args):
            return self.written_tensors(args, kwargs)
        return _tensors_at(self._unread, args, kwargs)

    def outputs(self, args, kwargs, result):
        """Return the output tensors: those written in place, then the new ones."""
        results = pt.tensors_in(result)
        if not self._written:
            return results
        written_tensors = self.written_tensors(args, kwargs)
        if not written_tensors:
            return results
        written_ids = {id(tensor) for tensor in written_tensors}
        return written_tensors + [tensor for tensor in results if id(tensor) not in written_ids]


def _tensors_at(places, args, kwargs):
    """Return the tensors among these arguments."""
    if not places:
        return []
    values = [kwargs.get(name) if name in kwargs else args[number] if number < len(args) and not kwarg else None
              for number, name, kwarg in places]
    return pt.tensors_in(values)


class OpSchemas(object):
    """The OpSchema of each function, computed once."""

    def __init__(self):
        self._known = {}  # {id of a function, whose hash is slow: (the function, to keep its id valid, OpSchema)}

    def find(self, function):
        entry = self._known.get(id(function))
        if entry is None:
            entry = self._known[id(function)] = function, OpSchema(function)
        return entry[1]


def plain_arguments(value):
    """Return an op's arguments as numbers and strings in nested lists, with "tensor" for each tensor."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in pt.TENSORS:
        return "tensor"
    if isinstance(value, (list, tuple)):
        return [plain_arguments(element) for element in value]
    if isinstance(value, dict):
        return {name: plain_arguments(element) for name, element in value.items()}
    return "tensor" if isinstance(value, torch.Tensor) else value if isinstance(value, _KINDS) else kind.__name__


def has_numbers(value):
    """Return whether any argument is a Python number."""
    for element in value:
        element_type = type(element)
        if element_type in _NUMBERS:
            return True
        if element_type not in _NOTHING and (
                has_numbers(element) if isinstance(element, (list, tuple)) else _is_number(element)):
            return True
    return False


def _is_number(value):
    return isinstance(value, (int, float, complex)) and not isinstance(value, bool)


def resolve(name):
    """Return the function of a recorded op if it is pure and belongs to ATen, else None."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] != "aten" or any(name_part in parts[1] for name_part in _NOT_ALONE):
        return None
    try:
        function = getattr(getattr(torch.ops.aten, parts[1]), parts[2])
    except (AttributeError, RuntimeError):
        return None
    schema = function._schema
    types = [str(argument.type) for argument in list(schema.arguments) + list(schema.returns)]
    return function if schema.returns and all(_is_harmless(type_name) for type_name in types) else None


def _is_harmless(kind):
    while kind.startswith(("Optional[", "List[")):
        kind = kind.partition("[")[2].rpartition("]")[0]
    return kind in _HARMLESS_TYPES
