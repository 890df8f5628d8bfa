"""segment_sum, segment_prod, unsorted_segment_sum, unsorted_segment_prod; and what TensorFlow builds on them:
unsorted_segment_mean and sqrt_n, the gradients of gather, IndexedSlices made dense."""

from tfdeterminism.patches import exact_sum, reduce
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    constant,
    is_real_or_complex,
    original,
    product,
    reshape,
    select,
    tensor,
    use_original_unless,
    with_gradient_of_op,
)
from tfdeterminism.patches.release import version


def install_sorted(replacements):
    from tensorflow.python.ops import gen_math_ops, math_ops
    replacements.replace(gen_math_ops, "segment_sum", _sorted("SegmentSum", math_ops.add, 0))
    replacements.replace(gen_math_ops, "segment_prod", _sorted("SegmentProd", math_ops.multiply, 1))


def install_unsorted(replacements):
    from tensorflow.python.ops import gen_math_ops, math_ops
    replacements.replace(gen_math_ops, "unsorted_segment_sum",
                    unsorted("UnsortedSegmentSum", math_ops.add, 0, fewest=2))
    replacements.replace(gen_math_ops, "unsorted_segment_prod",
                    unsorted("UnsortedSegmentProd", math_ops.multiply, 1, fewest=2))


def unsorted(op_type, combine, empty, fewest=0):
    """Return the replacement of unsorted_segment_sum or _prod.

    Args:
        op_type: the op.
        combine: a function of two rows.
        empty: the result for an id without rows.
        fewest: with fewer ids the call is left to the original; one id has no order.
    """

    def unsorted_segment(data, segment_ids, num_segments, name=None):
        with OpNameScope(name, op_type) as scope:
            data, ids, count = tensor(data), tensor(segment_ids), tensor(num_segments)
            use_original_unless(is_real_or_complex(data.dtype) and ids.dtype.is_integer and count.dtype.is_integer)
            use_original_unless(count.shape.is_compatible_with([]))
            _require_prefix(ids.shape, data.shape)
            static_count = constant(count)
            use_original_unless(static_count is None or static_count >= 0)
            id_count = ids.shape.num_elements()
            use_original_unless(id_count is None or id_count >= fewest)

            def forward(data, ids, count):
                return _reduce_unsorted(data, ids, count, combine, empty)
            result = with_gradient_of_op(op_type, forward, [data, ids, count])
            result.set_shape(_output_shape(static_count, data.shape, ids.shape))
            return scope.named(result)
    return unsorted_segment


def _reduce_unsorted(data, ids, count, combine, empty):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    # Counted by the original, whose errors report ids out of range and shapes that do not match.
    outer = ids.shape if ids.shape.is_fully_defined() else array_ops.shape(data)[:array_ops.rank(ids)]
    counts = exact_sum.count(array_ops.ones(outer, dtypes.int32), ids, count)
    keys = _vector(ids)
    rows, inner = _rows(data, ids, keys)
    count = array_ops.size(counts)
    if combine is math_ops.add:
        result = exact_sum.sum_by_key(exact_sum.Addends.from_rows(rows, keys), count, counts)
    else:
        result = _fill_empty(reduce.by_key(rows, keys, count, combine), counts, empty)
    return _restore_row_shape(result, counts, inner)


def _vector(ids):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    return cast(ids if ids.shape.ndims == 1 else array_ops.reshape(ids, [-1]), dtypes.int64)


def _restore_row_shape(result, counts, inner):
    """Return a result with its rows in their inner shape."""
    from tensorflow.python.ops import array_ops
    if isinstance(inner, list) and len(inner) == 1:
        return result
    return array_ops.reshape(result, array_ops.concat([array_ops.shape(counts), inner], 0))


def _fill_empty(result, counts, empty):
    """Set the result of ids without rows to `empty`.  It depends on `counts`, so that optimizers keep its checks."""
    from tensorflow.python.ops import array_ops
    return select(counts > 0, result, array_ops.zeros_like(result) + cast(empty, result.dtype))


def _rows(data, ids, keys):
    """Return the data as [number of ids, elements of a row], and the shape of a row."""
    from tensorflow.python.ops import array_ops, math_ops
    if data.shape.is_fully_defined() and ids.shape.is_fully_defined():
        row_shape = data.shape.as_list()[ids.shape.ndims:]
        rows = [ids.shape.num_elements(), product(row_shape)]
        return data if data.shape.as_list() == rows else reshape(data, rows), row_shape
    row_shape = array_ops.shape(data)[array_ops.rank(ids):]
    return reshape(data, [array_ops.size(keys), math_ops.reduce_prod(row_shape)]), row_shape


def _require_prefix(ids, data):
    if ids.ndims is not None and data.ndims is not None:
        use_original_unless(ids.ndims <= data.ndims and data[:ids.ndims].is_compatible_with(ids))


def _output_shape(count, data, ids):
    from tensorflow.python.framework import tensor_shape
    if ids.ndims is None or data.ndims is None:
        return tensor_shape.TensorShape(None)
    return tensor_shape.TensorShape([None if count is None else int(count)]).concatenate(data[ids.ndims:])


def _sorted(op_type, combine, empty):
    """Return the replacement of segment_sum or segment_prod; arguments as for unsorted()."""

    def segment(data, segment_ids, name=None):
        with OpNameScope(name, op_type) as scope:
            data, ids = tensor(data), tensor(segment_ids)
            use_original_unless(is_real_or_complex(data.dtype) and ids.dtype.is_integer)
            use_original_unless(ids.shape.ndims in (None, 1) and data.shape.ndims != 0)
            if ids.shape.ndims is not None:
                _require_prefix(ids.shape, data.shape)

            def forward(data, ids):
                return _reduce_sorted(data, ids, combine, empty)
            result = with_gradient_of_op(op_type, forward, [data, ids])
            result.set_shape(_output_shape(None, data.shape, ids.shape.with_rank(1)))
            return scope.named(result)
    return segment


def _reduce_sorted(data, ids, combine, empty):
    from tensorflow.python.ops import array_ops, math_ops
    outer = ids.shape if ids.shape.is_fully_defined() else array_ops.shape(data)[:1]
    counts = _count_sorted(outer, ids)
    keys = _vector(ids)
    if combine is math_ops.add:
        rows, inner = _rows(data, ids, keys)
        sums = exact_sum.sum_by_key(exact_sum.Addends.from_rows(rows, keys), array_ops.size(counts), counts)
        return _restore_row_shape(sums, counts, inner)
    return _fill_empty(reduce.reduce_sorted(data, keys, array_ops.size(counts), combine), counts, empty)


def _count_sorted(outer, ids):
    """Return the number of each id (float64), by the original, whose error reports ids that do not ascend."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_math_ops
    ones = array_ops.ones(outer, dtypes.float64)
    if version() < (2, 5):
        with exact_sum.name_scope():
            return original(gen_math_ops, "segment_sum")(ones, ids)
    # 2.5 and 2.6 raise for the sum on GPUs once determinism is enabled, but not for a maximum.
    occurs = gen_math_ops.segment_max(ones, ids)
    return exact_sum.count(cast(ones, dtypes.int32), ids, array_ops.size(occurs))
