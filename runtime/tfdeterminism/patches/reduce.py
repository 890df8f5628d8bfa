"""The reduction of rows that share a key, in an order that depends on nothing but the input.

A stable sort brings equal keys together. Then each run of equal keys is reduced in a tree: its first row is combined
with its second, its third with its fourth, and so on, until one row is left: about 2 N combinations in all, and the
rounding error grows with log N. Nothing is scattered or added atomically. Index arithmetic is 64-bit because TensorFlow
keeps 32-bit integers of a GPU's graph on the host.
"""

from tfdeterminism.patches import exact_sum
from tfdeterminism.patches.common import cast, constant, fill_like, select, while_loop

_MAX_UNROLLED_ROWS = 64  # up to which a graph gets the tree's steps unrolled instead of a loop


def by_key(rows, keys, count, combine):
    """Reduce rows [N, D] to [count, D] by keys (int64 [N], in any order); keys outside of [0, count) are ignored."""
    keys, order = sort(keys, count)
    return reduce_sorted(_gather(rows, order), keys, count, combine)


def sort(keys, count):
    """Return the keys ascending, with `count` for invalid ones, and the index that each came from (int64)."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    count = cast(count, dtypes.int64)
    is_invalid = math_ops.logical_or(keys < 0, keys >= count)
    keys = select(is_invalid, fill_like(count, keys), keys)
    static_count = constant(count)
    return _sort_ascending(keys, static_count is not None and static_count < 2 ** 31)


def _sort_ascending(keys, narrow):
    """Return the keys ascending and the index that each came from, both int64.  narrow: the keys fit into 32 bits."""
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
    ascending, order = _sort_ascending(keys, narrow)
    changes = math_ops.not_equal(ascending[1:], ascending[:-1])
    ends = gen_array_ops.where(array_ops.concat([changes, array_ops.ones_like(ascending[-1:], dtypes.bool)], 0))[:, 0]
    last = _gather(order, ends)
    if combine is None:
        return _gather(rows, last), last
    if combine is math_ops.add:
        return _sums(rows, keys, _gather(ascending, ends), ends), last
    return _reduce_runs(_gather(rows, order), ascending, combine)[0], last


def _sums(rows, keys, distinct_keys, ends):
    """Return the sums of the rows of each key.

    distinct_keys: the distinct keys, ascending; ends: their last sorted index.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    numbers = gen_array_ops.lower_bound([distinct_keys], [keys], dtypes.int64)[0]
    counts = ends - array_ops.concat([array_ops.zeros_like(ends[:1]) - 1, ends[:-1]], 0)
    inner = array_ops.shape(rows)[1:]
    flat = array_ops.reshape(rows, array_ops.stack([array_ops.size(keys), math_ops.reduce_prod(inner)]))
    addends = exact_sum.Addends.from_rows(flat, numbers)
    sums = exact_sum.sum_by_key(addends, array_ops.size(ends), cast(counts, dtypes.float64))
    return array_ops.reshape(sums, array_ops.concat([array_ops.shape(ends), inner], 0))


def reduce_sorted(rows, keys, count, combine, longest=None, weights=None):
    """Reduce like by_key, for rows [N, ...] whose keys ascend; a key without rows gets 0.

    Args:
        rows, keys, count, combine: see by_key.
        longest: an upper limit of the number of rows of one key, if known.
        weights: [N, 1, ...], factors of the rows.
    """
    from tensorflow.python.ops import array_ops
    rows, keys = _reduce_runs(rows, keys, combine, longest, weights)
    filler = array_ops.zeros(array_ops.concat([[1], array_ops.shape(rows)[1:]], 0), rows.dtype)
    return _gather(array_ops.concat([rows, filler], 0), last_rows(keys, count))


def _reduce_runs(rows, keys, combine, longest=None, weights=None):
    """Return one row for each distinct key, and these keys; as many tree steps as the longest run needs."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import tensor_shape
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    keys = array_ops.reshape(keys, [-1])  # a vector, even if its shape is unknown
    ranks = positions(keys) - gen_array_ops.lower_bound([keys], [keys], keys.dtype)[0]  # of each row in its run
    size = keys.shape.num_elements()
    if longest is None and size is not None and size <= _MAX_UNROLLED_ROWS:
        longest = size
    if weights is not None:  # the first step multiplies by the weights
        rows, keys, ranks = _tree_step(
            lambda indices: _gather(rows, indices) * _gather(weights, indices), keys, ranks, combine)
        longest = None if longest is None else (longest + 1) // 2

    def has_pairs(ranks):
        return math_ops.reduce_any(ranks > 0)

    def tree_step(rows, keys, ranks):
        return _tree_step(lambda indices: _gather(rows, indices), keys, ranks, combine)

    if context.executing_eagerly():
        while has_pairs(ranks).numpy():
            rows, keys, ranks = tree_step(rows, keys, ranks)
        return rows, keys
    if longest is not None:
        for _ in range(max(longest - 1, 0).bit_length()):
            rows, keys, ranks = tree_step(rows, keys, ranks)
        return rows, keys
    vector = tensor_shape.TensorShape([None])
    return while_loop(lambda rows, keys, ranks: has_pairs(ranks), tree_step, [rows, keys, ranks],
                       [vector.concatenate(rows.shape[1:]), vector, vector])[:2]


def _tree_step(take, keys, ranks, combine):
    """Combine each row of even rank with the next row, if it has the same key.  take(indices): returns rows."""
    from tensorflow.python.ops import gen_array_ops, math_ops
    half_ranks = ranks // 2
    first_index = gen_array_ops.where(math_ops.equal(ranks, 2 * half_ranks))[:, 0]
    next_index = math_ops.minimum(first_index + 1, _count(ranks) - 1)
    first_rows, ranks_kept = take(first_index), _gather(ranks, first_index)
    has_partner = _gather(ranks, next_index) > ranks_kept
    combined = select(has_partner, combine(first_rows, take(next_index)), first_rows)
    return combined, _gather(keys, first_index), _gather(half_ranks, first_index)


def last_rows(keys, count):
    """Return the index of the last row of each key in range(count); N for a key without rows."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import gen_array_ops, math_ops
    all_keys = [math_ops.range(cast(count, dtypes.int64))]
    upper = gen_array_ops.upper_bound([keys], all_keys, dtypes.int64)[0]
    lower = gen_array_ops.lower_bound([keys], all_keys, dtypes.int64)[0]
    return select(upper > lower, upper - 1, fill_like(_count(keys), upper))


def positions(vector):
    """Return 0, 1, ..., one for each element (int64)."""
    from tensorflow.python.ops import math_ops
    return math_ops.range(_count(vector))


def _count(vector):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    return array_ops.size(vector, out_type=dtypes.int64)


def _gather(rows, indices):
    from tensorflow.python.ops import array_ops
    return array_ops.gather(rows, indices)
