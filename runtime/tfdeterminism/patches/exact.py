"""Sums of floating-point rows by key whose additions are exact: their order cannot matter.

Every addend is rounded to a multiple of a power of two that suits its own sum: so coarse that float64 holds every
partial sum, given the largest magnitude and the number of addends (J. Demmel, H. D. Nguyen: Fast Reproducible
Floating-Point Summation, 2013).  TensorFlow's own float64 op then adds, atomically or not, and gives the same bits in
any order.  What rounding loses is less than float32 additions would; float64 is split in two and summed twice.
Infinities and NaN are added as they are; every NaN comes out as the same one.
"""

from tfdeterminism.patches import pieces
from tfdeterminism.patches.common import all_of, cast, constant, dims, original, select
from tfdeterminism.patches.release import version
from tfdeterminism.warned import of_cost

NARROW = 8  # below that many columns adding in place is several times slower than a segment sum
_HUGE, _TINY, _SHIFT = 2.0 ** 900, 2.0 ** -700, 2.0 ** 200  # float64 beyond these is shifted before it is split
_LEAST, _MOST = 2.0 ** -880, 2.0 ** 901  # between these lie all magnitudes of float64 after that shift


class Addends(object):
    """Addends and their keys, made piece by piece, never all at once where there are many.

    many: how many.  width: of a row.  dtype: floating-point or complex.  rows(start, stop): [n, width].
    keys(start, stop): int64 [n]; -1 takes no part, others are in [0, count).  Without start and stop: all of them.
    taken: (keys, weights) instead of keys, where each row times its weight is an addend of several sums: weights(start,
    stop): [n, 1].  whole: the rows where they are there anyway.
    """

    def __init__(self, many, width, dtype, rows, keys=None, taken=None, whole=None):
        self.many, self.width, self.dtype, self.rows, self.whole = many, width, dtype, rows, whole
        self.taken = taken or [(keys, None)]

    @classmethod
    def of(cls, rows, keys):
        """Of rows and keys that are there."""
        return cls(size(keys), dims(rows)[1], rows.dtype, pieces.of(rows), pieces.of(keys), whole=rows)

    @classmethod
    def weighted(cls, rows, taken):
        """Of rows, keys and weights that are there."""
        many = size(taken[0][0])
        taken = [(pieces.of(keys), pieces.of(weights)) for keys, weights in taken]
        return cls(many, dims(rows)[1], rows.dtype, pieces.of(rows), taken=taken)

    def take(self, start=None, stop=None, dtype=None):
        """(addends, keys) of a piece or of all, for each sum that they go to; converted to dtype."""
        rows = self.rows(start, stop)
        rows = rows if dtype in (None, rows.dtype) else cast(rows, dtype)
        return [(rows if weights is None else rows * cast(weights(start, stop), rows.dtype), keys(start, stop))
                for keys, weights in self.taken]

    def is_one_piece(self):
        return pieces.is_one(self.many, self.width)

    def if_any(self, count):
        """Without rows where there are no sums: nothing could be looked up for them."""
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import math_ops
        known = constant(count)
        if known is not None and known > 0:
            return self
        many = self.many * math_ops.minimum(cast(count, dtypes.int32), 1)

        def bounded(take):
            return take and (lambda start, stop: take(0, many) if start is None else take(start, stop))
        taken = [(bounded(keys), bounded(weights)) for keys, weights in self.taken]
        return Addends(many, self.width, self.dtype, bounded(self.rows), taken=taken)

    def mapped(self, dtype, function):
        """function(rows) instead of the rows."""
        if dtype == self.dtype:
            return self
        return Addends(self.many, self.width, dtype, lambda start, stop: function(self.rows(start, stop)),
                       taken=self.taken)


def size(keys):
    """The number of keys, an int where it is known."""
    from tensorflow.python.ops import array_ops
    many = keys.shape.num_elements()
    return array_ops.size(keys) if many is None else many


def by_key(addends, count, many=None):
    """[count, D]: the sum for each key.

    many: float64 [count], how many addends a key has (or more), where somebody has counted already.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    kind = addends.dtype
    if many is None and needed():
        many = _counts(addends, count)
    if kind.is_complex:
        real, imaginary = [by_key(addends.mapped(kind.real_dtype, take), count, many)
                           for take in (math_ops.real, math_ops.imag)]
        return math_ops.complex(real, imaginary)
    if kind.size == 2:
        return cast(by_key(addends.mapped(dtypes.float32, wide), count, many), kind)
    return _exact(addends.if_any(count), count, many) if needed() else _plain(addends, count)


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


def _counts(addends, count_of_keys):
    """How many addends of each key there are."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    return sum(count(array_ops.ones_like(keys, dtypes.int32), keys, count_of_keys)
               for keys in (keys(None, None) for keys, _ in addends.taken))


def scope():
    """The name of every addition here: what bears it, in float64 or integers, does not depend on order."""
    from tensorflow.python.framework import ops
    return ops.name_scope("ExactSum")


def _plain(addends, count):
    def more(rows, keys, so_far):
        sums = segment("sum", rows, keys, count)
        return [sums if so_far is None else so_far[0] + sums]
    if addends.whole is not None:
        return segment("sum", addends.whole, addends.take()[0][1], count)
    return _over(addends, more, lambda: [_zeros(count, addends.width, addends.dtype)], count)[0]


def _zeros(count, width, dtype):
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops
    return array_ops.zeros(ops.convert_to_tensor([cast(count, dtypes.int32), width]), dtype)


def _exact(addends, count, many):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_math_ops
    # The sums are differentiated as sums, also where a graph that was saved is differentiated op by op.
    peak, room = [array_ops.stop_gradient(value) for value in
                  (_peaks(addends, count), array_ops.expand_dims(12 * many, 1))]
    if addends.dtype != dtypes.float64:
        total = cast(_sums(addends, count, _once(peak, room, _are_many(addends, count)))[0], addends.dtype)
    else:
        of_cost("float64 is added in two parts for GPU-determinism: it takes about twice as long as float32")
        one = array_ops.ones_like(peak)
        shift = select(peak > _HUGE, one / _SHIFT, select(peak < _TINY, one * _SHIFT, one))
        high, low = _sums(addends, count, _twice(peak, room, shift))
        total = select(gen_math_ops.is_finite(high), high + low, high) / shift
    return select(gen_math_ops.is_nan(total), array_ops.zeros_like(total) + float("nan"), total)


def _are_many(addends, count):
    """Whether there are clearly more addends than sums, or may be."""
    count = constant(count)
    return count is None or not isinstance(addends.many, int) or 2 * int(count) <= addends.many


def _once(peak, room, at_once):
    """(rows, their places) -> what each keeps, for float32; in float64.

    What is added to an addend and taken off again, to round it, is at most `room` times the largest finite magnitude:
    an infinite addend must not make others NaN.  Never 0: optimizers leave out what is multiplied by 0, the counting
    among it, and with that what refuses bad keys.  at_once: they are all made now, one for each sum.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    peak = math_ops.maximum(math_ops.minimum(peak, peak.dtype.max), 2.0 ** -126)
    anchors = cast(peak, dtypes.float64) * room if at_once else None

    def rounded(rows, places):
        if at_once:
            anchor = array_ops.gather(anchors, places)
        else:
            anchor = cast(array_ops.gather(peak, places), dtypes.float64) * array_ops.gather(room, places)
        return [(rows + anchor) - anchor]
    return rounded


def _twice(peak, room, shift):
    """As _once, for float64: what each keeps of the whole addend, and of what the first leaves."""
    from tensorflow.python.ops import array_ops, math_ops
    coarse = math_ops.maximum(math_ops.minimum(peak * shift, _MOST), _LEAST) * room
    fine = coarse * 2.0 ** -52 * room

    def rounded(rows, places):
        rows = rows * array_ops.gather(shift, places)
        anchor, finer = array_ops.gather(coarse, places), array_ops.gather(fine, places)
        high = (rows + anchor) - anchor
        return [high, ((rows - high) + finer) - finer]
    return rounded


def _peaks(addends, count):
    """[count, D]: the largest magnitude among the addends of each sum; where there is none, 0 or less."""
    from tensorflow.python.ops import math_ops

    def more(rows, keys, so_far):
        largest = segment("max", math_ops.abs(rows), keys, count)
        return [largest if so_far is None else math_ops.maximum(so_far[0], largest)]
    if addends.whole is None or addends.is_one_piece():
        return _over(addends, more, lambda: [_zeros(count, addends.width, addends.dtype)], count)[0]
    [(rows, keys)] = addends.take()  # without as many magnitudes beside them
    return math_ops.maximum(segment("max", rows, keys, count), -segment("min", rows, keys, count))


def _sums(addends, count, rounded):
    """The sums [count, D] of what the rows keep by rounded(rows, places), of each of the things that it gives."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    add = _in_place if _can_add_in_place(addends) else _scattered if version() >= (2, 5) else _segmented
    further = 0 if add is _segmented else 1  # a row for what takes no part

    def more(rows, keys, so_far):
        kept = rounded(rows, math_ops.maximum(keys, 0))
        with scope():
            return [add(old, some, keys, count) for old, some in zip(so_far or [None] * len(kept), kept)]

    def start():
        zeros = _zeros(cast(count, dtypes.int32) + further, addends.width, dtypes.float64)
        return [zeros] * (2 if addends.dtype == dtypes.float64 else 1)
    found = _over(addends, more, start, 0 if add is _in_place else count, dtypes.float64)
    return [some[:-1] for some in found] if further else found


def _can_add_in_place(addends):
    """Whether pieces can be added to the sums so far: new sums of each piece cost much where there are many sums.

    From 2.4 on TensorFlow copies what it is to add to, in loops too.
    """
    from tensorflow.python.eager import context
    return (version() < (2, 4) and not addends.is_one_piece() and not context.executing_eagerly()
            and isinstance(addends.width, int) and addends.width >= NARROW)


def _segmented(so_far, rows, keys, count):
    sums = segment("sum", rows, keys, count)
    return sums if so_far is None else so_far + sums


def _scattered(so_far, rows, keys, count):
    """As _segmented, for 2.5 and 2.6, which refuse segment sums on GPUs once determinism is asked for."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops
    places, rows = _places(keys, rows, count)
    shape = array_ops.stack([cast(count, dtypes.int64) + 1, array_ops.shape(rows, out_type=dtypes.int64)[1]])
    sums = original(gen_array_ops, "scatter_nd")(places, rows, shape)
    return sums if so_far is None else so_far + sums


def _in_place(so_far, rows, keys, count):
    from tensorflow.python.ops import gen_array_ops
    return original(gen_array_ops, "tensor_scatter_add")(so_far, *_places(keys, rows, count))


def _places(keys, rows, count):
    """Keys as index tuples, what takes no part behind the last; and the rows: none where nothing can be written."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    shape = array_ops.shape(rows, out_type=dtypes.int64)
    many = shape[0] * math_ops.minimum(shape[1], 1)
    places = select(keys < 0, all_of(count, keys), keys)
    return array_ops.expand_dims(places[:many], 1), rows[:many]


def _over(addends, more, start, least, dtype=None):
    """more(rows, keys, what came before), a list, over all addends: their order and the pieces' sizes do not matter.

    start(): what comes before the first.  least: rows of a piece.  dtype: what addends are converted to.
    """
    def after(found, first, stop):
        for rows, keys in addends.take(first, stop, dtype):
            found = more(rows, keys, found)
        return found
    return pieces.over(addends.many, addends.width, after, start, least)
