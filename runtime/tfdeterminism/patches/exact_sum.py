"""Reproducible sums of floating-point rows by key: their additions are exact, so the order does not matter.

Every addend is rounded to a multiple of a power of two, chosen for its sum from the largest magnitude and the number of
addends, so coarse that float64 represents every partial sum exactly (J. Demmel, H. D. Nguyen: Fast Reproducible
Floating-Point Summation, 2013).  Then TensorFlow's own float64 op, atomic or not, gives the same bits in any order.
The rounding error is smaller than that of float32 additions; float64 is split into two parts, summed separately.
Infinities and NaN are added unrounded; every NaN result has the same bits.
"""

from tfdeterminism.patches import chunked
from tfdeterminism.patches.common import cast, constant, dims, fill_like, original, select
from tfdeterminism.patches.release import version
from tfdeterminism.warning_categories import warn_cost

MIN_WIDTH_IN_PLACE = 8  # columns; below, adding in place is several times slower than a segment sum
_HUGE, _TINY, _SHIFT = 2.0 ** 900, 2.0 ** -700, 2.0 ** 200  # float64 beyond these is shifted before it is split
_LEAST, _MOST = 2.0 ** -880, 2.0 ** 901  # between these lie all magnitudes of float64 after that shift


class Addends(object):
    """Addends and their keys, computed in chunks.

    Args:
        row_count: the number of addends.
        width: the number of elements of a row.
        dtype: floating-point or complex.
        rows: rows(start, stop) -> [n, width]; start=None: all rows.
        keys: keys(start, stop) -> int64 [n], in [0, count); -1 for a row that is in no sum.
        memberships: [(keys, weights)] instead of keys, if each row is in several sums, multiplied by
            weights(start, stop), [n, 1].
        all_rows: all rows, if they exist as one tensor.
    """

    def __init__(self, row_count, width, dtype, rows, keys=None, memberships=None, all_rows=None):
        self.row_count, self.width, self.dtype, self.rows, self.all_rows = row_count, width, dtype, rows, all_rows
        self.memberships = memberships or [(keys, None)]

    @classmethod
    def from_rows(cls, rows, keys):
        """Build from tensors: rows [n, width] and keys [n]."""
        return cls(
            size(keys), dims(rows)[1], rows.dtype, chunked.chunk_of(rows), chunked.chunk_of(keys), all_rows=rows)

    @classmethod
    def weighted(cls, rows, memberships):
        """Build from tensors: rows [n, width] and [(keys [n], weights [n, 1])]."""
        row_count = size(memberships[0][0])
        memberships = [(chunked.chunk_of(keys), chunked.chunk_of(weights)) for keys, weights in memberships]
        return cls(row_count, dims(rows)[1], rows.dtype, chunked.chunk_of(rows), memberships=memberships)

    def slice(self, start=None, stop=None, dtype=None):
        """Return the (addends, keys) of a chunk or of all rows, for each sum of a row; converted to dtype."""
        rows = self.rows(start, stop)
        rows = rows if dtype in (None, rows.dtype) else cast(rows, dtype)
        return [(rows if weights is None else rows * cast(weights(start, stop), rows.dtype), keys(start, stop))
                for keys, weights in self.memberships]

    def fits_one_chunk(self):
        return chunked.fits_one_chunk(self.row_count, self.width)

    def if_any(self, count):
        """Return these addends, or none if there are no sums: gathers from empty tensors would fail."""
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import math_ops
        static_count = constant(count)
        if static_count is not None and static_count > 0:
            return self
        row_count = self.row_count * math_ops.minimum(cast(count, dtypes.int32), 1)

        def bounded(take):
            return take and (lambda start, stop: take(0, row_count) if start is None else take(start, stop))
        memberships = [(bounded(keys), bounded(weights)) for keys, weights in self.memberships]
        return Addends(row_count, self.width, self.dtype, bounded(self.rows), memberships=memberships)

    def mapped(self, dtype, function):
        """Return the addends function(rows) in place of the rows."""
        if dtype == self.dtype:
            return self
        return Addends(self.row_count, self.width, dtype, lambda start, stop: function(self.rows(start, stop)),
                       memberships=self.memberships)


def size(keys):
    """Return the number of keys, an int if known."""
    from tensorflow.python.ops import array_ops
    static_size = keys.shape.num_elements()
    return array_ops.size(keys) if static_size is None else static_size


def sum_by_key(addends, count, counts=None):
    """Sum the addends of each key.

    Args:
        addends: the Addends.
        count: the number of keys.
        counts: float64 [count], the number of addends of each key, or an upper limit; None to count them.

    Returns:
        The sums, [count, width].
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    dtype = addends.dtype
    if counts is None and is_needed():
        counts = _counts(addends, count)
    if dtype.is_complex:
        real, imaginary = [sum_by_key(addends.mapped(dtype.real_dtype, part), count, counts)
                           for part in (math_ops.real, math_ops.imag)]
        return math_ops.complex(real, imaginary)
    if dtype.size == 2:
        return cast(sum_by_key(addends.mapped(dtypes.float32, to_float32), count, counts), dtype)
    return _sum_exactly(addends.if_any(count), count, counts) if is_needed() else _sum_directly(addends, count)


def to_float32(rows):
    """Convert 16-bit numbers to float32, in which they are summed; others are unchanged."""
    from tensorflow.python.framework import dtypes
    return cast(rows, dtypes.float32) if rows.dtype.size == 2 else rows


def is_needed():
    """Return whether this module is needed: from 2.7 on TensorFlow has a deterministic unsorted_segment_sum."""
    return version() < (2, 7)


def segment(name, data, keys, count):
    """Return the result of TensorFlow's own unsorted_segment_<name>, patched or not."""
    from tensorflow.python.ops import gen_math_ops
    return original(gen_math_ops, "unsorted_segment_" + name)(data, keys, count)


def count(ones, keys, size):
    """Count each key, by TensorFlow's own op: integer sums have no order, and it checks the keys.

    Args:
        ones: int32, in the shape that the keys must have.
        keys: the keys.
        size: the number of keys.

    Returns:
        float64 [size].
    """
    from tensorflow.python.framework import dtypes
    with name_scope():
        return cast(segment("sum", ones, keys, size), dtypes.float64)


def _counts(addends, count_of_keys):
    """Return the number of addends of each key."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    return sum(count(array_ops.ones_like(keys, dtypes.int32), keys, count_of_keys)
               for keys in (keys(None, None) for keys, _ in addends.memberships))


def name_scope():
    """Return the name scope of all additions here; in float64 or integers, they give the same bits in any order."""
    from tensorflow.python.framework import ops
    return ops.name_scope("ExactSum")


def _sum_directly(addends, count):
    def add_rows(rows, keys, sums_so_far):
        sums = segment("sum", rows, keys, count)
        return [sums if sums_so_far is None else sums_so_far[0] + sums]
    if addends.all_rows is not None:
        return segment("sum", addends.all_rows, addends.slice()[0][1], count)
    return _fold(addends, add_rows, lambda: [_zeros(count, addends.width, addends.dtype)], count)[0]


def _zeros(count, width, dtype):
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops
    return array_ops.zeros(ops.convert_to_tensor([cast(count, dtypes.int32), width]), dtype)


def _sum_exactly(addends, count, counts):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_math_ops
    # peak: the largest magnitude of each sum; room: the factor by which an anchor exceeds it, see _round_once().
    # By the factor 12 every partial sum stays below the anchor, with a margin, and so is exact in float64.
    # Gradients are those of plain sums, also if a saved graph is differentiated op by op.
    peak, room = [array_ops.stop_gradient(value) for value in
                  (_peaks(addends, count), array_ops.expand_dims(12 * counts, 1))]
    if addends.dtype != dtypes.float64:
        round_rows = _round_once(peak, room, _has_many_addends(addends, count))
        total = cast(_sums(addends, count, round_rows)[0], addends.dtype)
    else:
        warn_cost("float64 is added in two parts for GPU-determinism: it takes about twice as long as float32")
        ones = array_ops.ones_like(peak)
        shift = select(peak > _HUGE, ones / _SHIFT, select(peak < _TINY, ones * _SHIFT, ones))
        high, low = _sums(addends, count, _round_twice(peak, room, shift))
        total = select(gen_math_ops.is_finite(high), high + low, high) / shift
    return select(gen_math_ops.is_nan(total), array_ops.zeros_like(total) + float("nan"), total)


def _has_many_addends(addends, count):
    """Return whether there are, or may be, at least twice as many addends as sums."""
    count = constant(count)
    return count is None or not isinstance(addends.row_count, int) or 2 * int(count) <= addends.row_count


def _round_once(peak, room, at_once):
    """Return the rounding function of float32: (rows, keys) -> [rounded rows], in float64.

    To round an addend, an anchor is added and subtracted: at most `room` times the largest finite magnitude, so that an
    infinite addend does not make others NaN. It is never 0: optimizers drop a multiplication by 0, and with it the
    counting, which rejects invalid keys. at_once: compute the anchors of all sums first, instead of for each row.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    peak = math_ops.maximum(math_ops.minimum(peak, peak.dtype.max), 2.0 ** -126)
    anchors = cast(peak, dtypes.float64) * room if at_once else None

    def round_rows(rows, places):
        if at_once:
            anchor = array_ops.gather(anchors, places)
        else:
            anchor = cast(array_ops.gather(peak, places), dtypes.float64) * array_ops.gather(room, places)
        return [(rows + anchor) - anchor]
    return round_rows


def _round_twice(peak, room, shift):
    """Return the rounding function of float64: (rows, keys) -> [high parts, rounded low parts]."""
    from tensorflow.python.ops import array_ops, math_ops
    coarse = math_ops.maximum(math_ops.minimum(peak * shift, _MOST), _LEAST) * room
    fine = coarse * 2.0 ** -52 * room

    def round_rows(rows, places):
        rows = rows * array_ops.gather(shift, places)
        anchor, finer = array_ops.gather(coarse, places), array_ops.gather(fine, places)
        high = (rows + anchor) - anchor
        return [high, ((rows - high) + finer) - finer]
    return round_rows


def _peaks(addends, count):
    """Return the largest magnitude among the addends of each sum, [count, width]; at most 0 without addends."""
    from tensorflow.python.ops import math_ops

    def update_peaks(rows, keys, so_far):
        largest = segment("max", math_ops.abs(rows), keys, count)
        return [largest if so_far is None else math_ops.maximum(so_far[0], largest)]
    if addends.all_rows is None or addends.fits_one_chunk():
        return _fold(addends, update_peaks, lambda: [_zeros(count, addends.width, addends.dtype)], count)[0]
    [(rows, keys)] = addends.slice()  # without a tensor of all magnitudes
    return math_ops.maximum(segment("max", rows, keys, count), -segment("min", rows, keys, count))


def _sums(addends, count, round_rows):
    """Return the sums, [count, width] each, of the parts that round_rows(rows, keys) returns."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    add = _add_in_place if _can_add_in_place(addends) else _add_by_scatter if version() >= (2, 5) else _add_by_segment
    extra_rows = 0 if add is _add_by_segment else 1  # for addends that are in no sum

    def add_rows(rows, keys, so_far):
        parts = round_rows(rows, math_ops.maximum(keys, 0))
        with name_scope():
            sums = so_far or [None] * len(parts)
            return [add(sum_so_far, part, keys, count) for sum_so_far, part in zip(sums, parts)]

    def start():
        zeros = _zeros(cast(count, dtypes.int32) + extra_rows, addends.width, dtypes.float64)
        return [zeros] * (2 if addends.dtype == dtypes.float64 else 1)
    sums = _fold(addends, add_rows, start, 0 if add is _add_in_place else count, dtypes.float64)
    return [part_sums[:-1] for part_sums in sums] if extra_rows else sums


def _can_add_in_place(addends):
    """Return whether chunks can be added to the sums in place.

    New sums for each chunk are expensive if there are many sums. From 2.4 on TensorFlow copies the tensor that it adds
    to, in loops, too.
    """
    from tensorflow.python.eager import context
    return (version() < (2, 4) and not addends.fits_one_chunk() and not context.executing_eagerly()
            and isinstance(addends.width, int) and addends.width >= MIN_WIDTH_IN_PLACE)


def _add_by_segment(so_far, rows, keys, count):
    sums = segment("sum", rows, keys, count)
    return sums if so_far is None else so_far + sums


def _add_by_scatter(so_far, rows, keys, count):
    """Do the same as _add_by_segment, for 2.5 and 2.6, whose segment sums raise on GPUs once determinism is enabled."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops
    places, rows = _places(keys, rows, count)
    shape = array_ops.stack([cast(count, dtypes.int64) + 1, array_ops.shape(rows, out_type=dtypes.int64)[1]])
    sums = original(gen_array_ops, "scatter_nd")(places, rows, shape)
    return sums if so_far is None else so_far + sums


def _add_in_place(so_far, rows, keys, count):
    from tensorflow.python.ops import gen_array_ops
    return original(gen_array_ops, "tensor_scatter_add")(so_far, *_places(keys, rows, count))


def _places(keys, rows, count):
    """Return keys as index tuples, with an extra index for rows in no sum; and the rows, none if their width is 0."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    shape = array_ops.shape(rows, out_type=dtypes.int64)
    row_count = shape[0] * math_ops.minimum(shape[1], 1)
    places = select(keys < 0, fill_like(count, keys), keys)
    return array_ops.expand_dims(places[:row_count], 1), rows[:row_count]


def _fold(addends, combine, start, min_rows, dtype=None):
    """Fold combine(rows, keys, result so far) over all addends; order and sizes of the chunks do not matter.

    Args:
        addends: the Addends.
        combine: returns the next result, a list of tensors.
        start: start() -> the result before the first chunk.
        min_rows: the minimum number of rows in a chunk.
        dtype: that addends are converted to.
    """
    def process_chunk(result, begin, stop):
        for rows, keys in addends.slice(begin, stop, dtype):
            result = combine(rows, keys, result)
        return result
    return chunked.map_chunks(addends.row_count, addends.width, process_chunk, start, min_rows)
