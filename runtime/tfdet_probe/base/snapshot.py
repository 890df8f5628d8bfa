"""Outputs as bytes: the comparison is bitwise, so -0.0 != 0.0, and NaN payloads matter."""

import hashlib
import json
import re
import struct

import numpy as np

_BITS = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}
_NUMBERS = re.compile(r"(bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128))$")


class Snapshot(object):
    """The outputs of one run.

    Attributes:
        parts: [(dtype name, shape, bytes)], one for each output.
        digest: SHA-256 of all parts, 64 hex digits.
    """

    def __init__(self, parts):
        self.parts = parts
        digest = hashlib.sha256()
        for dtype, shape, data in parts:
            digest.update(json.dumps([dtype, list(shape)]).encode("ascii"))
            digest.update(data)
        self.digest = digest.hexdigest()

    @classmethod
    def from_arrays(cls, arrays):
        """Build from the outputs, a list of arrays."""
        return cls([_to_part(np.asarray(array)) for array in arrays])

    def save(self, path):
        # type: (str) -> None
        """Write to a file: a header of JSON, then the bytes of the parts."""
        header = [[dtype, list(shape), len(data)] for dtype, shape, data in self.parts]
        with open(path, "wb") as out:
            out.write(json.dumps(header).encode("ascii") + b"\n")
            for _, _, data in self.parts:
                out.write(data)

    @classmethod
    def load(cls, path):
        """Read what save() wrote."""
        with open(path, "rb") as source:
            header = json.loads(source.readline().decode("ascii"))
            return cls([(d, tuple(s), source.read(n)) for d, s, n in header])


def _to_part(array):
    if array.dtype == object:
        # Strings of different lengths: with their lengths, or ["ab", "c"] would equal ["a", "bc"].
        items = [_item(value) for value in array.ravel().tolist()]
        data = b"".join(str(len(item)).encode("ascii") + b":" + item for item in items)
        return ("string", array.shape, data)
    # NumPy's fixed-width strings as they are: tolist() would drop NULs at their end.
    name = array.dtype.str if array.dtype.kind in "SU" else array.dtype.name
    return (name, array.shape, np.ascontiguousarray(array).tobytes())


def _item(value):
    """The bytes of one element of an array of objects, with a prefix for its type: 1 differs from "1"."""
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, float):
        return b"f" + struct.pack("<d", value)
    if isinstance(value, (np.ndarray, np.generic)):  # ragged outputs: never by str(), which rounds and elides
        return b"a" + Snapshot.from_arrays([value]).digest.encode("ascii")
    if value is None or isinstance(value, (bool, int, complex)):
        return b"o" + repr(value).encode("ascii")
    raise TypeError("an output holds a {}: its bytes are not known".format(type(value).__name__))


def max_difference(one, two):
    # type: (Snapshot, Snapshot) -> tuple[int | None, float | None]
    """The largest difference of two snapshots.

    Args:
        one, two: snapshots of the same case.

    Returns:
        (ulp, absolute).  ulp: the number of floats of the dtype between two values (0 from -0.0 to 0.0: equal values,
        different bytes); absolute: the absolute difference.  Each is None if it does not exist: for different shapes,
        strings, a NaN; ulp also for integers, absolute also for an infinite difference.
    """
    ulp, absolute = 0, 0.0
    if [p[:2] for p in one.parts] != [p[:2] for p in two.parts]:
        return None, None
    for (dtype, _, a), (_, _, b) in zip(one.parts, two.parts):
        if a != b:
            ulp = _max_or_none(ulp, _ulp(dtype, a, b))
            absolute = _max_or_none(absolute, _absolute(dtype, a, b))
    return ulp, absolute


def _max_or_none(so_far, value):
    return None if so_far is None or value is None else max(so_far, value)


def _ulp(dtype, a, b):
    if dtype not in _BITS:
        return None
    first, second = _differing(a, b, _BITS[dtype])
    infinity = {"float16": 0x7c00, "bfloat16": 0x7f80, "float32": 0x7f800000, "float64": 0x7ff << 52}[dtype]
    sign = first.dtype.type(1 << (8 * first.dtype.itemsize - 1))
    magnitudes = first & ~sign, second & ~sign
    if (np.maximum(*magnitudes) > first.dtype.type(infinity)).any():  # NaN
        return None
    # On unsigned magnitudes: the difference of two signed 64-bit patterns may overflow.
    gap = np.where((first ^ second) & sign, magnitudes[0] + magnitudes[1], _absolute_difference(*magnitudes))
    return int(gap.max())


def _absolute_difference(first, second):
    return np.where(first > second, first - second, second - first)


def _differing(a, b, dtype):
    """The elements whose bytes differ, so that equal infinities and NaNs do not spoil the maximum."""
    size = np.dtype(dtype).itemsize
    rows = [np.frombuffer(data, np.uint8).reshape(-1, size) for data in (a, b)]
    where = (rows[0] != rows[1]).any(axis=1)
    return [np.frombuffer(data, dtype)[where] for data in (a, b)]


def _absolute(dtype, a, b):
    if dtype == "bfloat16":
        first, second = [(bits.astype(np.uint32) << 16).view(np.float32) for bits in _differing(a, b, np.uint16)]
    elif _NUMBERS.match(dtype):
        first, second = _differing(a, b, np.dtype(dtype))
    else:
        return None
    if first.dtype.kind in "iu":  # exact: float64 cannot hold every int64
        unsigned = np.dtype("u{}".format(first.dtype.itemsize))
        high, low = np.maximum(first, second).view(unsigned), np.minimum(first, second).view(unsigned)
        return float((high - low).max())
    wide = np.complex128 if first.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        largest = float(np.abs(first.astype(wide) - second.astype(wide)).max())
    return largest if np.isfinite(largest) else None
