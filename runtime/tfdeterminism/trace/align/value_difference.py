"""The difference of two values of the same tensor."""

import numpy

from ..schema.tensor_values import COMPLEX, FLOATS, as_numbers

_WIDTH = {"bfloat16": "<u2", "float16": "<u2", "float32": "<u4", "float64": "<u8"}


def measure_difference(left, right):
    """Return a dict that says by how much two tensor_values.TensorSamples differ.

    A sample has `elements`, every head["stride"]-th element of a tensor, and `head`, which describes the whole tensor.
    A measure that does not apply to the type is None. compared: number of compared elements; differing: of these;
    absolute, relative, ulps: the largest of each, over the elements that are finite in both; index, values_at_index:
    where the largest absolute difference is, or the first element that differs, and both values there; shapes: both
    shapes if they or the types differ, and then nothing is compared.
    """
    result = {"elements": left.head["elements"], "compared": 0, "differing": 0, "absolute": None, "relative": None,
              "ulps": None, "index": None, "values_at_index": None, "shapes": None,
              "nonfinite": [_nonfinite(left), _nonfinite(right)]}
    if any(left.head[name] != right.head[name] for name in ("dtype", "shape", "stride")):
        return dict(result, shapes=[left.head["shape"], right.head["shape"]])
    bits = [sample.elements.view("u1").reshape(len(sample.elements), sample.elements.itemsize)
            for sample in (left, right)]
    places = numpy.flatnonzero((bits[0] != bits[1]).any(axis=1))
    result.update(compared=len(left.elements), differing=len(places))
    if len(places):
        result.update(_largest([sample.elements[places] for sample in (left, right)], places, left.head))
    return result


def _largest(stored, places, head):
    """Return the fields about the largest difference. stored: the differing elements of both, in stored form."""
    dtype = head["dtype"]
    numbers = [as_numbers(elements, dtype) for elements in stored]
    if dtype == "bool":
        return _element_at(0, places, head, [elements.astype(bool) for elements in numbers])
    if dtype not in FLOATS + COMPLEX:
        distances = _integer_distances(*numbers)
        position = int(numpy.argmax(distances))
        return dict(_element_at(position, places, head, numbers), absolute=int(distances[position]))
    finite = numpy.flatnonzero(numpy.isfinite(numbers[0]) & numpy.isfinite(numbers[1]))
    if not len(finite):
        return _element_at(0, places, head, numbers)
    widened = [elements[finite].astype("c16" if dtype in COMPLEX else "f8") for elements in numbers]
    with numpy.errstate(all="ignore"):
        distances = numpy.minimum(numpy.abs(widened[0] - widened[1]), numpy.finfo("f8").max)
        size = numpy.maximum(numpy.abs(widened[0]), numpy.abs(widened[1]))
        relative = numpy.where(size > 0, numpy.minimum(distances / numpy.where(size > 0, size, 1), 2), 0)
    position = int(numpy.argmax(distances))
    ulps = None if dtype in COMPLEX else int(_ulps([elements[finite] for elements in stored], _WIDTH[dtype]).max())
    return dict(_element_at(int(finite[position]), places, head, numbers), absolute=float(distances[position]),
                relative=float(relative.max()), ulps=ulps)


def _integer_distances(left, right):
    """Return the differences of integers of any type, exactly, as uint64."""
    low, high = (values.astype("u8") for values in (numpy.minimum(left, right), numpy.maximum(left, right)))
    return high - low  # modulo 2^64, which is also correct for signed integers


def _ulps(floats, width):
    """Return the number of floats of the type between each two. The bits are mapped to ordered integers; -0 is 0."""
    sign = numpy.uint64(1 << (8 * numpy.dtype(width).itemsize - 1))
    bits = [values.view(width).astype("u8") for values in floats]
    keys = [numpy.where(pattern >= sign, sign - (pattern - sign), sign + pattern) for pattern in bits]
    return _integer_distances(*keys)


def _element_at(position, places, head, numbers):
    flat_index = int(places[position]) * head["stride"]
    index = numpy.unravel_index(flat_index, head["shape"]) if head["shape"] else ()
    return {"index": [int(coordinate) for coordinate in index],
            "values_at_index": [_json_number(values[position]) for values in numbers]}


def _json_number(number):
    """Return a number for JSON: NaN and infinities, which JSON lacks, become strings."""
    if isinstance(number, numpy.bool_):
        return bool(number)
    if isinstance(number, numpy.complexfloating):
        return str(complex(number))
    if isinstance(number, numpy.integer):
        return int(number)
    return float(number) if numpy.isfinite(number) else str(float(number))


def _nonfinite(value):
    """Return the counts "nan" and "inf", and the position "first", of a whole tensor; None if all of it is finite."""
    head = value.head
    return {name: head[name] for name in ("nan", "inf", "first")} if head["nan"] + head["inf"] else None
