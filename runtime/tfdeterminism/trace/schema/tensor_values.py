"""Values that a trace keeps beside its digests: some tensors at some steps, of a large one a part.

The payload of a VALS block: u32 length of a head, the head as JSON, then the kept elements as raw bytes. A head's keys:

    kind        "op", "loss" or "weight"
    name        of the loss or the variable; of an op its node
    key         id of an op's definition, else null
    order, role place in the list that `--record-values` named, and what it is there: "culprit", "path" or "loss"
    step, occurrence    occurrence: how many values of this name came before
    dtype, shape        of the whole tensor
    stride      every stride-th element is kept, in the order of memory, from the first on
    nan, inf, first     how many of all elements are NaN or infinite, and the place of the first of them, or null
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
# How the elements of a type lie in the file. NumPy has no bfloat16: the upper half of a float32.
_STORED = {"bool": "|u1", "bfloat16": "<u2", "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8",
           "complex128": "<c16", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "|u1",
           "uint16": "<u2", "uint32": "<u4", "uint64": "<u8"}
_LENGTH = struct.Struct("<I")
MAX_DIMENSIONS = 32  # that any NumPy has
_MAX_ELEMENTS = 1 << 40  # elements of a tensor


class TensorSample(object):
    """head: the dict above, with the number of elements of the whole tensor; elements: array of the sampled ones."""

    def __init__(self, head, elements):
        self.head = head
        self.elements = elements

    @property
    def numbers(self):
        return as_numbers(self.elements, self.head["dtype"])


def is_supported(dtype):
    """Can values of this type (its name) be kept? Not text, handles and quantised numbers."""
    return dtype in _STORED


def to_stored(array, dtype):
    """A NumPy array of TensorFlow's type as flat elements as they are stored."""
    flat = numpy.ascontiguousarray(array).reshape(-1)
    return flat.view(_STORED[dtype]) if dtype in ("bool", "bfloat16") else flat.astype(_STORED[dtype], copy=False)


def as_numbers(kept, dtype):
    """Stored elements as numbers that NumPy knows."""
    if dtype == "bfloat16":
        return (kept.astype("<u4") << 16).view("<f4")
    return kept


def count_nonfinite(flat, dtype):
    """(NaNs, infinities, place of the first of either or None) of stored elements."""
    if dtype not in FLOATS + COMPLEX:
        return 0, 0, None
    numbers = as_numbers(flat, dtype)
    finite = numpy.isfinite(numbers)
    if finite.all():
        return 0, 0, None
    nan = int(numpy.count_nonzero(numpy.isnan(numbers)))
    return nan, int(numbers.size - numpy.count_nonzero(finite)) - nan, int(numpy.argmin(finite))


def pack(head, kept):
    """The payload of a block."""
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode("utf-8")
    return _LENGTH.pack(len(text)) + text + kept.tobytes()


def unpack(payload):
    """The TensorSample in a payload, or None for what no recorder writes."""
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
    """Is each field what a recorder writes?"""
    if not all(type(head.get(name)) is kind for name, kind in _FIELDS.items()) or head["dtype"] not in _STORED:
        return False
    counts = [head[name] for name in ("step", "occurrence", "order", "nan", "inf")] + head["shape"]
    counts += [head[name] for name in ("key", "first") if head.get(name) is not None]
    if not all(type(one) is int and 0 <= one < _MAX_ELEMENTS for one in counts) or len(head["shape"]) > MAX_DIMENSIONS:
        return False
    named = head["kind"] in KINDS and head["role"] in ROLES and (head.get("key") is None) == (head["kind"] != "op")
    elements = _elements(head["shape"])
    inside = head["nan"] + head["inf"] <= elements and (head.get("first") is None) == (not head["nan"] + head["inf"])
    inside = inside and elements < _MAX_ELEMENTS and (head.get("first") or 0) < max(elements, 1)
    return named and inside and head["stride"] >= 1


def _elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count
