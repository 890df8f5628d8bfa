"""Reduce rows that share a key, in an order that depends on nothing but the input.

Equal keys are brought together by a stable sort.  Then every run of equal keys is halved, its first row combined with
its second, its third with its fourth, and so on, until each run is one row: about 2 N elementwise combinations in all,
in pairs (so the rounding error grows with log N, not with N).  Nothing is scattered, nothing is added atomically.
Index arithmetic is 64-bit because TensorFlow keeps 32-bit integers of a GPU's graph on the host.
"""

from tfdeterminism.patches.common import cast, constant, select

_UNROLL = 64  # rows up to which a graph gets the halvings one by one instead of a loop


def by_key(rows, keys, bad, count, combine, empty):
    """rows [N, D] reduced to [count, D], and which of the count keys occurred.

    keys: int64 [N], in any order; only those in [0, count) take part.  bad: bool [N], keys that the op must refuse:
    a CPU raises InvalidArgumentError for them, and a GPU ignores them, as in all of TensorFlow's gathers.
    empty: what a key without rows gets.
    """
    keys, order = sort(keys, bad, count)
    return sorted_runs(_gather(rows, order), keys, count, combine, empty)


def sort(keys, bad, count):
    """Keys in ascending order, those that take no part last, as count; and where each row came from (int64)."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    count = cast(count, dtypes.int64)
    outside = math_ops.logical_or(keys < 0, keys >= count)
    keys = select(outside, array_ops.zeros_like(keys) + count, keys)
    known = constant(count)
    keys, order = _ascending(keys, known is not None and known < 2 ** 31)
    return keys, _gather(refuse(bad), order)


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
    keys, order = _ascending(keys, narrow)
    changes = math_ops.not_equal(keys[1:], keys[:-1])
    ends = array_ops.concat([changes, array_ops.ones_like(keys[-1:], dtypes.bool)], 0)
    last = _gather(order, gen_array_ops.where(ends)[:, 0])
    if combine is None:
        return _gather(rows, last), last
    return _one_row_each(_gather(rows, order), keys, combine, None)[0], last


def refuse(bad):
    """Row numbers; for a bad row one past the end, which a gather on a CPU raises for."""
    from tensorflow.python.ops import array_ops
    rows = positions(bad)
    return select(bad, array_ops.zeros_like(rows) + _count(bad), rows)


def sorted_runs(rows, keys, count, combine, empty, longest=None):
    """As by_key, of rows [N, ...] whose keys ascend.  longest: a bound on the rows of one key, where one is known."""
    from tensorflow.python.ops import array_ops
    rows, keys = _one_row_each(rows, keys, combine, longest)
    last, present = last_rows(keys, count)
    filler = array_ops.fill(array_ops.concat([[1], array_ops.shape(rows)[1:]], 0), cast(empty, rows.dtype))
    return _gather(array_ops.concat([rows, filler], 0), last), present


def _one_row_each(rows, keys, combine, longest):
    """One row for each key that occurs, and these keys; as many halvings as the longest run needs."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import tensor_shape
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    keys = array_ops.reshape(keys, [-1])  # a vector also where nothing is known of its shape
    ranks = positions(keys) - gen_array_ops.lower_bound([keys], [keys], keys.dtype)[0]  # of each row in its run

    def left(ranks):
        return math_ops.reduce_any(ranks > 0)

    def halved(rows, keys, ranks):
        return _halved(rows, keys, ranks, combine)

    if context.executing_eagerly():
        while left(ranks).numpy():
            rows, keys, ranks = halved(rows, keys, ranks)
        return rows, keys
    size = keys.shape.num_elements()
    if longest is None and size is not None and size <= _UNROLL:
        longest = size
    if longest is not None:
        for _ in range(max(longest - 1, 0).bit_length()):
            rows, keys, ranks = halved(rows, keys, ranks)
        return rows, keys
    vector = tensor_shape.TensorShape([None])
    return _while_loop(lambda rows, keys, ranks: left(ranks), halved, [rows, keys, ranks],
                       [vector.concatenate(rows.shape[1:]), vector, vector])[:2]


def _halved(rows, keys, ranks, combine):
    """Each row of even rank combined with the one after it, if that is of its run."""
    from tensorflow.python.ops import gen_array_ops, math_ops
    half = ranks // 2
    kept = gen_array_ops.where(math_ops.equal(ranks, 2 * half))[:, 0]
    after = math_ops.minimum(kept + 1, _count(ranks) - 1)
    first, ranks_kept = _gather(rows, kept), _gather(ranks, kept)
    paired = _gather(ranks, after) > ranks_kept
    return select(paired, combine(first, _gather(rows, after)), first), _gather(keys, kept), _gather(half, kept)


def last_rows(keys, count):
    """For each key in range(count), the number of its last row (N if it has none), and whether it has one."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    wanted = [math_ops.range(cast(count, dtypes.int64))]
    upper = gen_array_ops.upper_bound([keys], wanted, dtypes.int64)[0]
    lower = gen_array_ops.lower_bound([keys], wanted, dtypes.int64)[0]
    present = upper > lower
    return select(present, upper - 1, array_ops.zeros_like(upper) + _count(keys)), present


def _while_loop(condition, body, values, shapes):
    try:
        from tensorflow.python.ops import while_loop  # from 2.12 on
    except ImportError:
        from tensorflow.python.ops import control_flow_ops as while_loop
    return while_loop.while_loop(condition, body, values, shape_invariants=shapes)


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
