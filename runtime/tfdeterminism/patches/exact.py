"""Sums of floating-point rows by key whose additions are exact: their order cannot matter.

Every addend is rounded to a multiple of a power of two that suits its own sum: so coarse that float64 holds every
partial sum, given the largest magnitude and the number of addends (J. Demmel, H. D. Nguyen: Fast Reproducible
Floating-Point Summation, 2013).  TensorFlow's own float64 op then adds, atomically or not, and gives the same bits in
any order.  What rounding loses is less than float32 additions would; float64 is split in two and summed twice.
Infinities and NaN are added as they are; every NaN comes out as the same one.
"""

from tfdeterminism.patches.common import at_once, cast, constant, dims, original, select, version, while_loop
from tfdeterminism.warned import of_cost

_CHUNK = 2 ** 20  # elements at a time: what is needed beside inputs and outputs stays small
_HUGE, _TINY, _SHIFT = 2.0 ** 900, 2.0 ** -700, 2.0 ** 200  # float64 beyond these is shifted before it is split
_LEAST, _MOST = 2.0 ** -880, 2.0 ** 901  # between these lie all magnitudes, float64's after that shift


class Part(object):
    """Addends and their keys: rows [N, D] are made piece by piece, take(start, stop), never all at once where many.

    dtype: of the rows, floating-point or complex.  keys: int64 [N]; -1 takes no part, others are in [0, count).
    """

    def __init__(self, keys, width, dtype, take):
        from tensorflow.python.ops import array_ops
        self.keys, self.width, self.dtype, self._take = keys, width, dtype, take
        many = keys.shape.num_elements()
        self.many = array_ops.size(keys) if many is None else many

    @classmethod
    def of(cls, rows, keys):
        """Of rows that are there."""
        return cls(keys, dims(rows)[1], rows.dtype, lambda start, stop: piece(rows, start, stop))

    def take(self, start=None, stop=None):
        """Rows and keys of a piece; of all."""
        return self._take(start, stop), piece(self.keys, start, stop)

    def if_any(self, count):
        """Without rows where there are no sums: nothing could be looked up for them."""
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import math_ops
        known = constant(count)
        if known is not None and known > 0:
            return self
        many = self.many * math_ops.minimum(cast(count, dtypes.int32), 1)
        return Part(self.keys[:many], self.width, self.dtype,
                    lambda start, stop: self._take(0, many) if start is None else self._take(start, stop))

    def times(self, weights):
        """Each row times its weight, [N, 1]."""
        return Part(self.keys, self.width, self.dtype,
                    lambda start, stop: self._take(start, stop) * piece(weights, start, stop))

    def mapped(self, dtype, function):
        """function(rows) instead of the rows."""
        if dtype == self.dtype:
            return self
        return Part(self.keys, self.width, dtype, lambda start, stop: function(self._take(start, stop)))


def piece(rows, start, stop):
    """rows[start:stop]; without start all of them, and no op more in the graph."""
    return rows if start is None else rows[start:stop]


def by_key(parts, count, many):
    """[count, D]: for each key the sum of its rows over all parts.

    many: float64 [count], how many rows of all parts a key has (or more); None where nothing needs it.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    kind = parts[0].dtype
    if kind.is_complex:
        real, imaginary = [by_key([part.mapped(kind.real_dtype, take) for part in parts], count, many)
                           for take in (math_ops.real, math_ops.imag)]
        return math_ops.complex(real, imaginary)
    if kind.size == 2:
        return cast(by_key([part.mapped(dtypes.float32, wide) for part in parts], count, many), kind)
    return _exact([part.if_any(count) for part in parts], count, many) if needed() else _plain(parts, count)


def wide(rows):
    """16-bit numbers as float32, in which they are summed."""
    from tensorflow.python.framework import dtypes
    return cast(rows, dtypes.float32) if rows.dtype.size == 2 else rows


def needed():
    """From 2.7 on TensorFlow's switch makes unsorted_segment_sum itself deterministic."""
    return version() < (2, 7)


def segment(name, data, keys, count):
    """TensorFlow's own unsorted_segment_<name>, patched or not."""
    from tensorflow.python.ops import gen_math_ops
    return original(gen_math_ops, "unsorted_segment_" + name)(data, keys, count)


def count(ones, keys, size):
    """How many of each key there are (float64), by TensorFlow's own op: counting has no order, and it checks the keys.

    ones: int32, in the shape of the keys or in that which they should have.
    """
    from tensorflow.python.framework import dtypes
    with scope():
        return cast(segment("sum", ones, keys, size), dtypes.float64)


def counts(parts, size):
    """`many` for by_key, where nobody has counted yet."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    return sum(count(array_ops.ones_like(part.keys, dtypes.int32), part.keys, size) for part in parts)


def scope():
    """The name of every addition here: what bears it, in float64 or integers, does not depend on order."""
    from tensorflow.python.framework import ops
    return ops.name_scope("ExactSum")


def _plain(parts, count):
    from tensorflow.python.ops import math_ops
    sums = [segment("sum", rows, keys, count) for rows, keys in (part.take() for part in parts)]
    return _folded(math_ops.add, sums)


def _exact(parts, count, many):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_math_ops
    peak, room = _peaks(parts, count), array_ops.expand_dims(12 * many, 1)
    if parts[0].dtype != dtypes.float64:
        total = cast(_sums(parts, count, [_anchor(cast(peak, dtypes.float64), room)], None)[0], parts[0].dtype)
    else:
        of_cost("float64 is added in two parts for GPU-determinism: it takes about twice as long as float32")
        one = array_ops.ones_like(peak)
        shift = select(peak > _HUGE, one / _SHIFT, select(peak < _TINY, one * _SHIFT, one))
        anchor = _anchor(peak * shift, room)
        high, low = _sums(parts, count, [anchor, anchor * 2.0 ** -52 * room], shift)
        total = select(gen_math_ops.is_finite(high), high + low, high) / shift
    return select(gen_math_ops.is_nan(total), array_ops.zeros_like(total) + float("nan"), total)


def _anchor(peak, room):
    """What is added to an addend and taken off again, to round it.

    At most `room` times the largest finite magnitude: an infinite addend must not make others NaN.  Never 0: optimizers
    leave out what is multiplied by 0, the counting among it, and with that what refuses bad keys.
    """
    from tensorflow.python.ops import array_ops, math_ops
    # The sums are differentiated as sums, also where a graph that was saved is differentiated op by op.
    return array_ops.stop_gradient(math_ops.maximum(math_ops.minimum(peak, _MOST), _LEAST) * room)


def _peaks(parts, count):
    """The largest magnitude among the addends of each sum; where there is none, 0 or less."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops

    def more(rows, keys, so_far):
        largest = segment("max", math_ops.abs(rows), keys, count)
        return [largest if so_far is None else math_ops.maximum(so_far[0], largest)]

    def start(width):
        return [array_ops.zeros(array_ops.stack([cast(count, dtypes.int32), width]), parts[0].dtype)]
    return _over_all(parts, count, more, start)[0]


def _sums(parts, count, anchors, shift):
    """For each anchor [count, D] the sums of what adding it to an addend keeps, after what the former ones kept."""
    from tensorflow.python.ops import array_ops

    def more(rows, keys, so_far):
        found = _added(rows, keys, count, anchors, shift)
        return found if so_far is None else [old + new for old, new in zip(so_far, found)]

    def start(width):
        return [array_ops.zeros_like(anchor) for anchor in anchors]
    return _over_all(parts, count, more, start)


def _over_all(parts, count, more, start):
    """more(rows, keys, what came before) over all pieces of all parts: their order and their sizes do not matter."""
    found = None
    for part in parts:
        found = _over(part, count, more, start, found)
    return found


def _over(part, count, more, start, found):
    from tensorflow.python.eager import context
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    many, width = part.many, part.width
    if at_once() or (isinstance(many, int) and isinstance(width, int) and many * width <= 2 * _CHUNK):
        return more(*part.take(), so_far=found)
    # No piece is smaller than the results: adding these up must not cost more than the rows.
    step = math_ops.maximum(_CHUNK // math_ops.maximum(width, 1), cast(count, dtypes.int32))
    if context.executing_eagerly():
        for first in range(0, many, int(step)):
            found = more(*part.take(first, first + int(step)), so_far=found)
        return start(width) if found is None else found
    found = start(width) if found is None else found
    shapes = [value.shape for value in found]

    def body(first, *found):
        found = more(*part.take(first, first + step), so_far=found)
        for value, shape in zip(found, shapes):
            value.set_shape(shape)
        return [first + step] + found
    return while_loop(lambda first, *found: first < many, body, [array_ops.zeros_like(step)] + found,
                      [step.shape] + shapes)[1:]


def _added(rows, keys, count, anchors, shift):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    places = math_ops.maximum(keys, 0)
    left = cast(rows, dtypes.float64)
    if shift is not None:
        left = left * array_ops.gather(shift, places)
    totals = []
    for anchor in anchors:
        anchor = array_ops.gather(anchor, places)
        kept = (left + anchor) - anchor
        left = left - kept if len(totals) + 1 < len(anchors) else None
        with scope():
            totals.append(_add(kept, keys, count))
    return totals


def _add(rows, keys, count):
    """By TensorFlow's float64 op.  2.5 and 2.6 refuse segment sums on GPUs once determinism is asked for."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    if version() < (2, 5):
        return segment("sum", rows, keys, count)
    shape = array_ops.shape(rows, out_type=dtypes.int64)
    width, many = shape[1], shape[0] * math_ops.minimum(shape[1], 1)  # where nothing can be written, nothing may be
    count = cast(count, dtypes.int64)
    keys = select(keys < 0, array_ops.zeros_like(keys) + count, keys)
    scatter = original(gen_array_ops, "scatter_nd")
    return scatter(array_ops.expand_dims(keys[:many], 1), rows[:many], array_ops.stack([count + 1, width]))[:-1]


def _folded(combine, values):
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result
