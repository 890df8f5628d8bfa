"""By how much two values of the same tensor differ."""

import numpy

from ..schema.tensor_values import COMPLEX, FLOATS, as_numbers

_WIDTH = {"bfloat16": "<u2", "float16": "<u2", "float32": "<u4", "float64": "<u8"}


def measure_difference(left, right):
    """The fields of two tensor_values.TensorSample that say how much they differ; None for numbers that the type does
    not have.

    compared: of how many elements; differing: of these; absolute, relative, ulps: the largest of each, over what is
    finite in both; index, values_at_index: where the largest absolute difference is, or the first element that differs,
    and both values there; shapes: where these differ already, and then nothing is compared.
    """
    found = {"elements": left.head["elements"], "compared": 0, "differing": 0, "absolute": None, "relative": None,
             "ulps": None, "index": None, "values_at_index": None, "shapes": None,
             "nonfinite": [_nonfinite(left), _nonfinite(right)]}
    if any(left.head[name] != right.head[name] for name in ("dtype", "shape", "stride")):
        return dict(found, shapes=[left.head["shape"], right.head["shape"]])
    bits = [one.elements.view("u1").reshape(len(one.elements), one.elements.itemsize) for one in (left, right)]
    places = numpy.flatnonzero((bits[0] != bits[1]).any(axis=1))
    found.update(compared=len(left.elements), differing=len(places))
    if len(places):
        found.update(_largest([one.elements[places] for one in (left, right)], places, left.head))
    return found


def _largest(kept, places, head):
    """Of elements that differ, as they are stored."""
    dtype = head["dtype"]
    numbers = [as_numbers(one, dtype) for one in kept]
    if dtype == "bool":
        return _element_at(0, places, head, [one.astype(bool) for one in numbers])
    if dtype not in FLOATS + COMPLEX:
        apart = _integer_distances(*numbers)
        at = int(numpy.argmax(apart))
        return dict(_element_at(at, places, head, numbers), absolute=int(apart[at]))
    finite = numpy.flatnonzero(numpy.isfinite(numbers[0]) & numpy.isfinite(numbers[1]))
    if not len(finite):
        return _element_at(0, places, head, numbers)
    wide = [one[finite].astype("c16" if dtype in COMPLEX else "f8") for one in numbers]
    with numpy.errstate(all="ignore"):
        apart = numpy.minimum(numpy.abs(wide[0] - wide[1]), numpy.finfo("f8").max)
        size = numpy.maximum(numpy.abs(wide[0]), numpy.abs(wide[1]))
        relative = numpy.where(size > 0, numpy.minimum(apart / numpy.where(size > 0, size, 1), 2), 0)
    at = int(numpy.argmax(apart))
    ulps = None if dtype in COMPLEX else int(_ulps([one[finite] for one in kept], _WIDTH[dtype]).max())
    return dict(_element_at(int(finite[at]), places, head, numbers), absolute=float(apart[at]),
                relative=float(relative.max()), ulps=ulps)


def _integer_distances(left, right):
    """The differences of integers of any type, exactly, as uint64."""
    low, high = (one.astype("u8") for one in (numpy.minimum(left, right), numpy.maximum(left, right)))
    return high - low  # modulo 2^64: right for signed ones too


def _ulps(floats, width):
    """How many floats of the type lie between each two: the bits in the order of the numbers; -0 is 0."""
    sign = numpy.uint64(1 << (8 * numpy.dtype(width).itemsize - 1))
    bits = [one.view(width).astype("u8") for one in floats]
    keys = [numpy.where(one >= sign, sign - (one - sign), sign + one) for one in bits]
    return _integer_distances(*keys)


def _element_at(number, places, head, numbers):
    place = int(places[number]) * head["stride"]
    return {"index": [int(one) for one in numpy.unravel_index(place, head["shape"])] if head["shape"] else [],
            "values_at_index": [_json_number(one[number]) for one in numbers]}


def _json_number(number):
    """As JSON has it: NaN and infinities, which it has not, as words."""
    if isinstance(number, numpy.bool_):
        return bool(number)
    if isinstance(number, numpy.complexfloating):
        return str(complex(number))
    if isinstance(number, numpy.integer):
        return int(number)
    return float(number) if numpy.isfinite(number) else str(float(number))


def _nonfinite(value):
    """{"nan", "inf", "first"} of a whole tensor, None where all of it is finite."""
    head = value.head
    return {name: head[name] for name in ("nan", "inf", "first")} if head["nan"] + head["inf"] else None
