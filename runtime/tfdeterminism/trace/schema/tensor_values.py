"""The values that a trace stores beside its digests: some tensors at some steps, a part of a large one.

The payload of a VALS block: u32 length of a head, the head as JSON, then the stored elements as raw bytes. The keys of
a head:

    kind        "op", "loss" or "weight"
    name        of the loss or the variable; of an op its node
    key         id of an op's definition, else null
    order, role position in the list that `--record-values` named, and role there: "culprit", "loss" or
                "path" (a tensor between the culprit and the loss)
    step, occurrence    occurrence: number of earlier values of this name
    dtype, shape        of the whole tensor
    stride      every stride-th element is stored, in the order of memory, from the first on
    nan, inf, first     number of NaN and of infinite elements, and the position of the first of either, or null
"""

import json
import struct

import numpy

from .. import untrusted

KINDS = ("op", "loss", "weight")
ROLES = ("culprit", "path", "loss")
FLOATS = ("bfloat16", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
_FIELDS = {"kind": str, "name": str, "order": int, "role": str, "step": int, "occurrence": int, "dtype": str,
           "shape": list, "stride": int, "nan": int, "inf": int}
# The stored form of each type. NumPy has no bfloat16, which is the upper half of a float32.
_STORED = {"bool": "|u1", "bfloat16": "<u2", "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8",
           "complex128": "<c16", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "|u1",
           "uint16": "<u2", "uint32": "<u4", "uint64": "<u8"}
_LENGTH = struct.Struct("<I")
MAX_DIMENSIONS = 32  # supported by all versions of NumPy
_MAX_ELEMENTS = 1 << 40  # elements of a tensor


class TensorSample(object):
    """Some elements of a tensor.

    head: the dict above, with the number of elements of the whole tensor; elements: array of the sampled ones.
    """

    def __init__(self, head, elements):
        self.head = head
        self.elements = elements

    @property
    def numbers(self):
        return as_numbers(self.elements, self.head["dtype"])


def is_supported(dtype):
    """Return whether values of this type (its name) can be stored. Text, handles and quantized numbers cannot."""
    return dtype in _STORED


def to_stored(array, dtype):
    """Return a framework's array as flat elements in their stored form."""
    flat = numpy.ascontiguousarray(array).reshape(-1)
    return flat.view(_STORED[dtype]) if dtype in ("bool", "bfloat16") else flat.astype(_STORED[dtype], copy=False)


def as_numbers(stored, dtype):
    """Return stored elements as numbers that NumPy knows."""
    if dtype == "bfloat16":
        return (stored.astype("<u4") << 16).view("<f4")
    return stored


def count_nonfinite(flat, dtype):
    """Return (NaNs, infinities, position of the first of either or None) of stored elements."""
    if dtype not in FLOATS + COMPLEX:
        return 0, 0, None
    numbers = as_numbers(flat, dtype)
    finite = numpy.isfinite(numbers)
    if finite.all():
        return 0, 0, None
    nan = int(numpy.count_nonzero(numpy.isnan(numbers)))
    return nan, int(numbers.size - numpy.count_nonzero(finite)) - nan, int(numpy.argmin(finite))


def pack(head, stored):
    """Return the payload of a block."""
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode("utf-8")
    return _LENGTH.pack(len(text)) + text + stored.tobytes()


def unpack(payload):
    """Return the TensorSample in a payload, or None if no recorder writes such a payload."""
    if len(payload) < _LENGTH.size:
        return None
    end = _LENGTH.size + _LENGTH.unpack_from(payload)[0]
    try:
        head = untrusted.parse_json(payload[_LENGTH.size:end])
    except ValueError:
        return None
    if not isinstance(head, dict) or not _is_valid(head):
        return None
    head["elements"] = _elements(head["shape"])
    width = numpy.dtype(_STORED[head["dtype"]]).itemsize
    if len(payload) - end != width * -(-head["elements"] // head["stride"]):
        return None
    return TensorSample(head, numpy.frombuffer(payload, _STORED[head["dtype"]], offset=end))


def _is_valid(head):
    """Return whether each field has a value that a recorder writes."""
    if not all(type(head.get(name)) is kind for name, kind in _FIELDS.items()) or head["dtype"] not in _STORED:
        return False
    counts = [head[name] for name in ("step", "occurrence", "order", "nan", "inf")] + head["shape"]
    counts += [head[name] for name in ("key", "first") if head.get(name) is not None]
    if not all(type(count) is int and 0 <= count < _MAX_ELEMENTS for count in counts):
        return False
    if len(head["shape"]) > MAX_DIMENSIONS:
        return False
    has_valid_key = (head.get("key") is None) == (head["kind"] != "op")
    has_valid_names = head["kind"] in KINDS and head["role"] in ROLES and has_valid_key
    elements = _elements(head["shape"])
    nonfinite = head["nan"] + head["inf"]
    has_valid_counts = nonfinite <= elements and (head.get("first") is None) == (not nonfinite)
    has_valid_counts = has_valid_counts and elements < _MAX_ELEMENTS and (head.get("first") or 0) < max(elements, 1)
    return has_valid_names and has_valid_counts and head["stride"] >= 1


def _elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count
