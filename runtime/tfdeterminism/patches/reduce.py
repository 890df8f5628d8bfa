"""Reduce rows that share a key, in an order that depends on nothing but the input.

Equal keys are brought together by a stable sort.  Then every run of equal keys is halved, its first row combined with
its second, its third with its fourth, and so on, until each run is one row: about 2 N elementwise combinations in all,
in pairs (so the rounding error grows with log N, not with N).  Nothing is scattered, nothing is added atomically.
Index arithmetic is 64-bit because TensorFlow keeps 32-bit integers of a GPU's graph on the host.
"""

from tfdeterminism.patches import exact
from tfdeterminism.patches.common import all_of, cast, constant, select, while_loop

_UNROLL = 64  # rows up to which a graph gets the halvings one by one instead of a loop


def by_key(rows, keys, count, combine):
    """rows [N, D] reduced to [count, D]; keys: int64 [N], in any order; only those in [0, count) take part."""
    keys, order = sort(keys, count)
    return sorted_runs(_gather(rows, order), keys, count, combine)


def sort(keys, count):
    """Keys in ascending order, those that take no part last, as count; and where each row came from (int64)."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    count = cast(count, dtypes.int64)
    outside = math_ops.logical_or(keys < 0, keys >= count)
    keys = select(outside, all_of(count, keys), keys)
    known = constant(count)
    return _ascending(keys, known is not None and known < 2 ** 31)


def _ascending(keys, narrow):
    """Keys in ascending order and where each came from, both int64.  narrow: they fit into 32 bits."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, nn_ops
    # Of equal elements top_k takes the earlier first: a stable sort.
    descending, order = nn_ops.top_k(cast(-keys, dtypes.int32) if narrow else -keys, k=array_ops.size(keys))
    return -cast(descending, dtypes.int64), cast(order, dtypes.int64)


def once_each(rows, keys, combine, narrow):
    """rows [N, ...] reduced to one row for each key that occurs, and where in the input that key last stood.

    keys: int64 [N], in any order, any of them.  combine=None: of each key the last row.  narrow: see above.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    ascending, order = _ascending(keys, narrow)
    changes = math_ops.not_equal(ascending[1:], ascending[:-1])
    ends = gen_array_ops.where(array_ops.concat([changes, array_ops.ones_like(ascending[-1:], dtypes.bool)], 0))[:, 0]
    last = _gather(order, ends)
    if combine is None:
        return _gather(rows, last), last
    if combine is math_ops.add:
        return _sums(rows, keys, _gather(ascending, ends), ends), last
    return _one_row_each(_gather(rows, order), ascending, combine)[0], last


def _sums(rows, keys, different, ends):
    """The sums of the rows of each key.  different: the keys that occur, ascending; ends: where they end if sorted."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    numbers = gen_array_ops.lower_bound([different], [keys], dtypes.int64)[0]
    many = ends - array_ops.concat([array_ops.zeros_like(ends[:1]) - 1, ends[:-1]], 0)
    inner = array_ops.shape(rows)[1:]
    flat = array_ops.reshape(rows, array_ops.stack([array_ops.size(keys), math_ops.reduce_prod(inner)]))
    sums = exact.by_key(exact.Addends.of(flat, numbers), array_ops.size(ends), cast(many, dtypes.float64))
    return array_ops.reshape(sums, array_ops.concat([array_ops.shape(ends), inner], 0))


def sorted_runs(rows, keys, count, combine, longest=None, weights=None):
    """As by_key, of rows [N, ...] whose keys ascend; keys without rows get 0.

    longest: a bound on the rows of one key, where one is known.  weights: [N, 1, ...], to multiply the rows with.
    """
    from tensorflow.python.ops import array_ops
    rows, keys = _one_row_each(rows, keys, combine, longest, weights)
    filler = array_ops.zeros(array_ops.concat([[1], array_ops.shape(rows)[1:]], 0), rows.dtype)
    return _gather(array_ops.concat([rows, filler], 0), last_rows(keys, count))


def _one_row_each(rows, keys, combine, longest=None, weights=None):
    """One row for each key that occurs, and these keys; as many halvings as the longest run needs."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import tensor_shape
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    keys = array_ops.reshape(keys, [-1])  # a vector also where nothing is known of its shape
    ranks = positions(keys) - gen_array_ops.lower_bound([keys], [keys], keys.dtype)[0]  # of each row in its run
    size = keys.shape.num_elements()
    if longest is None and size is not None and size <= _UNROLL:
        longest = size
    if weights is not None:  # half of the weighted rows at a time
        rows, keys, ranks = _halved(lambda at: _gather(rows, at) * _gather(weights, at), keys, ranks, combine)
        longest = None if longest is None else (longest + 1) // 2

    def left(ranks):
        return math_ops.reduce_any(ranks > 0)

    def halved(rows, keys, ranks):
        return _halved(lambda at: _gather(rows, at), keys, ranks, combine)

    if context.executing_eagerly():
        while left(ranks).numpy():
            rows, keys, ranks = halved(rows, keys, ranks)
        return rows, keys
    if longest is not None:
        for _ in range(max(longest - 1, 0).bit_length()):
            rows, keys, ranks = halved(rows, keys, ranks)
        return rows, keys
    vector = tensor_shape.TensorShape([None])
    return while_loop(lambda rows, keys, ranks: left(ranks), halved, [rows, keys, ranks],
                       [vector.concatenate(rows.shape[1:]), vector, vector])[:2]


def _halved(take, keys, ranks, combine):
    """Each row of even rank combined with the one after it, if that is of its run.  take(places): rows."""
    from tensorflow.python.ops import gen_array_ops, math_ops
    half = ranks // 2
    kept = gen_array_ops.where(math_ops.equal(ranks, 2 * half))[:, 0]
    after = math_ops.minimum(kept + 1, _count(ranks) - 1)
    first, ranks_kept = take(kept), _gather(ranks, kept)
    paired = _gather(ranks, after) > ranks_kept
    return select(paired, combine(first, take(after)), first), _gather(keys, kept), _gather(half, kept)


def last_rows(keys, count):
    """For each key in range(count), the number of its last row; N if it has none."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import gen_array_ops, math_ops
    wanted = [math_ops.range(cast(count, dtypes.int64))]
    upper = gen_array_ops.upper_bound([keys], wanted, dtypes.int64)[0]
    lower = gen_array_ops.lower_bound([keys], wanted, dtypes.int64)[0]
    return select(upper > lower, upper - 1, all_of(_count(keys), upper))


def positions(vector):
    """0, 1, ..., one for each element (int64)."""
    from tensorflow.python.ops import math_ops
    return math_ops.range(_count(vector))


def _count(vector):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    return array_ops.size(vector, out_type=dtypes.int64)


def _gather(rows, indices):
    from tensorflow.python.ops import array_ops
    return array_ops.gather(rows, indices)
