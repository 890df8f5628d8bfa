"""Reduce rows that share a key, in an order that depends on nothing but the input.

A stable sort brings equal keys together.  Then each run of equal keys is reduced in a tree: its first row is combined
with its second, its third with its fourth, and so on, until one row is left: about 2 N combinations in all, and the
rounding error grows with log N.  Nothing is scattered or added atomically.
Index arithmetic is 64-bit because TensorFlow keeps 32-bit integers of a GPU's graph on the host.
"""

from tfdeterminism.patches import exact_sum
from tfdeterminism.patches.common import cast, constant, fill_like, select, while_loop

_MAX_UNROLLED_ROWS = 64  # up to which a graph gets the tree's steps unrolled instead of a loop


def by_key(rows, keys, count, combine):
    """Reduce rows [N, D] to [count, D] by keys (int64 [N], in any order); keys outside of [0, count) are ignored."""
    keys, order = sort(keys, count)
    return reduce_sorted(_gather(rows, order), keys, count, combine)


def sort(keys, count):
    """The keys ascending, with `count` for invalid ones, and the index that each came from (int64)."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    count = cast(count, dtypes.int64)
    outside = math_ops.logical_or(keys < 0, keys >= count)
    keys = select(outside, fill_like(count, keys), keys)
    known = constant(count)
    return _ascending(keys, known is not None and known < 2 ** 31)


def _ascending(keys, narrow):
    """The keys ascending and the index that each came from, both int64.  narrow: the keys fit into 32 bits."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, nn_ops
    # top_k is stable: of equal elements it returns the earlier first.
    descending, order = nn_ops.top_k(cast(-keys, dtypes.int32) if narrow else -keys, k=array_ops.size(keys))
    return -cast(descending, dtypes.int64), cast(order, dtypes.int64)


def reduce_unique(rows, keys, combine, narrow):
    """Reduce rows [N, ...] to one row for each distinct key.

    Args:
        rows: the rows.
        keys: int64 [N], in any order, of any value.
        combine: a function of two rows; None keeps the last row of each key.
        narrow: whether the keys fit into 32 bits.

    Returns:
        The reduced rows, and the index of the last row of each key.
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
    """The sums of the rows of each key.  different: the distinct keys, ascending; ends: their last sorted index."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    numbers = gen_array_ops.lower_bound([different], [keys], dtypes.int64)[0]
    many = ends - array_ops.concat([array_ops.zeros_like(ends[:1]) - 1, ends[:-1]], 0)
    inner = array_ops.shape(rows)[1:]
    flat = array_ops.reshape(rows, array_ops.stack([array_ops.size(keys), math_ops.reduce_prod(inner)]))
    addends = exact_sum.Addends.from_rows(flat, numbers)
    sums = exact_sum.by_key(addends, array_ops.size(ends), cast(many, dtypes.float64))
    return array_ops.reshape(sums, array_ops.concat([array_ops.shape(ends), inner], 0))


def reduce_sorted(rows, keys, count, combine, longest=None, weights=None):
    """As by_key, for rows [N, ...] whose keys ascend; a key without rows gets 0.

    Args:
        rows, keys, count, combine: see by_key.
        longest: a bound on the number of rows of one key, if known.
        weights: [N, 1, ...], factors of the rows.
    """
    from tensorflow.python.ops import array_ops
    rows, keys = _one_row_each(rows, keys, combine, longest, weights)
    filler = array_ops.zeros(array_ops.concat([[1], array_ops.shape(rows)[1:]], 0), rows.dtype)
    return _gather(array_ops.concat([rows, filler], 0), last_rows(keys, count))


def _one_row_each(rows, keys, combine, longest=None, weights=None):
    """One row for each distinct key, and these keys; as many tree steps as the longest run needs."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import tensor_shape
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    keys = array_ops.reshape(keys, [-1])  # a vector, even if its shape is unknown
    ranks = positions(keys) - gen_array_ops.lower_bound([keys], [keys], keys.dtype)[0]  # of each row in its run
    size = keys.shape.num_elements()
    if longest is None and size is not None and size <= _MAX_UNROLLED_ROWS:
        longest = size
    if weights is not None:  # the first step multiplies by the weights
        rows, keys, ranks = _tree_step(lambda at: _gather(rows, at) * _gather(weights, at), keys, ranks, combine)
        longest = None if longest is None else (longest + 1) // 2

    def left(ranks):
        return math_ops.reduce_any(ranks > 0)

    def tree_step(rows, keys, ranks):
        return _tree_step(lambda at: _gather(rows, at), keys, ranks, combine)

    if context.executing_eagerly():
        while left(ranks).numpy():
            rows, keys, ranks = tree_step(rows, keys, ranks)
        return rows, keys
    if longest is not None:
        for _ in range(max(longest - 1, 0).bit_length()):
            rows, keys, ranks = tree_step(rows, keys, ranks)
        return rows, keys
    vector = tensor_shape.TensorShape([None])
    return while_loop(lambda rows, keys, ranks: left(ranks), tree_step, [rows, keys, ranks],
                       [vector.concatenate(rows.shape[1:]), vector, vector])[:2]


def _tree_step(take, keys, ranks, combine):
    """Combine each row of even rank with the next row, if it has the same key.  take(indices): rows."""
    from tensorflow.python.ops import gen_array_ops, math_ops
    half = ranks // 2
    kept = gen_array_ops.where(math_ops.equal(ranks, 2 * half))[:, 0]
    after = math_ops.minimum(kept + 1, _count(ranks) - 1)
    first, ranks_kept = take(kept), _gather(ranks, kept)
    paired = _gather(ranks, after) > ranks_kept
    return select(paired, combine(first, take(after)), first), _gather(keys, kept), _gather(half, kept)


def last_rows(keys, count):
    """The index of the last row of each key in range(count); N for a key without rows."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import gen_array_ops, math_ops
    wanted = [math_ops.range(cast(count, dtypes.int64))]
    upper = gen_array_ops.upper_bound([keys], wanted, dtypes.int64)[0]
    lower = gen_array_ops.lower_bound([keys], wanted, dtypes.int64)[0]
    return select(upper > lower, upper - 1, fill_like(_count(keys), upper))


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
