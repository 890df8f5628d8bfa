"""segment_sum, segment_prod, unsorted_segment_sum, unsorted_segment_prod; and what TensorFlow builds on them:
unsorted_segment_mean and sqrt_n, the gradients of gather, IndexedSlices made dense."""

from tfdeterminism.patches import reduce
from tfdeterminism.patches.common import (
    Scope,
    cast,
    constant,
    is_real_or_complex,
    like_op,
    need,
    product,
    reshape,
    tensor,
)


def install_sorted(session):
    from tensorflow.python.ops import gen_math_ops, math_ops
    session.replace(gen_math_ops, "segment_sum", _sorted("SegmentSum", math_ops.add, 0))
    session.replace(gen_math_ops, "segment_prod", _sorted("SegmentProd", math_ops.multiply, 1))


def install_unsorted(session):
    from tensorflow.python.ops import gen_math_ops, math_ops
    session.replace(gen_math_ops, "unsorted_segment_sum",
                    unsorted("UnsortedSegmentSum", math_ops.add, 0, fewest=2))
    session.replace(gen_math_ops, "unsorted_segment_prod",
                    unsorted("UnsortedSegmentProd", math_ops.multiply, 1, fewest=2))


def unsorted_sum(data, segment_ids, num_segments, name=None):
    """As tf.math.unsorted_segment_sum, for the other patches."""
    from tensorflow.python.ops import math_ops
    return unsorted("UnsortedSegmentSum", math_ops.add, 0)(data, segment_ids, num_segments, name)


def unsorted(op_type, combine, empty, fewest=0):
    """The function that takes the place of unsorted_segment_sum or _prod.

    fewest: of fewer ids than that the original may take care.  One id has no order.
    """

    def unsorted_segment(data, segment_ids, num_segments, name=None):
        with Scope(name, op_type) as scope:
            data, ids, count = tensor(data), tensor(segment_ids), tensor(num_segments)
            need(is_real_or_complex(data.dtype) and ids.dtype.is_integer and count.dtype.is_integer)
            need(count.shape.is_compatible_with([]))
            _need_prefix(ids.shape, data.shape)
            known = constant(count)
            need(known is None or known >= 0)
            many = ids.shape.num_elements()
            need(many is None or many >= fewest)

            def forward(data, ids, count):
                return _reduce_unsorted(data, ids, count, combine, empty)
            result = like_op(op_type, forward, [data, ids, count])
            result.set_shape(_output_shape(known, data.shape, ids.shape))
            return scope.named(result)
    return unsorted_segment


def _reduce_unsorted(data, ids, count, combine, empty):
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops, check_ops
    checks = []
    if not (data.shape.is_fully_defined() and ids.shape.is_fully_defined()):
        checks = [check_ops.assert_equal(array_ops.shape(data)[:array_ops.rank(ids)], array_ops.shape(ids))]
    with ops.control_dependencies(checks):
        inner = array_ops.shape(data)[array_ops.rank(ids):]
    keys = cast(array_ops.reshape(ids, [-1]), dtypes.int64)
    rows = _rows(data, ids, keys, inner)
    bad = keys >= cast(count, dtypes.int64)
    result, _ = reduce.by_key(rows, keys, bad, count, combine, empty)
    return array_ops.reshape(result, array_ops.concat([[cast(count, dtypes.int32)], inner], 0))


def _rows(data, ids, keys, inner):
    """data as [number of ids, rest]."""
    from tensorflow.python.ops import array_ops, math_ops
    if data.shape.is_fully_defined() and ids.shape.is_fully_defined():
        rest = data.shape.as_list()[ids.shape.ndims:]
        return reshape(data, [ids.shape.num_elements(), product(rest)])
    return reshape(data, [array_ops.size(keys), math_ops.reduce_prod(inner)])


def _need_prefix(ids, data):
    if ids.ndims is not None and data.ndims is not None:
        need(ids.ndims <= data.ndims and data[:ids.ndims].is_compatible_with(ids))


def _output_shape(count, data, ids):
    from tensorflow.python.framework import tensor_shape
    if ids.ndims is None or data.ndims is None:
        return tensor_shape.TensorShape(None)
    return tensor_shape.TensorShape([None if count is None else int(count)]).concatenate(data[ids.ndims:])


def _sorted(op_type, combine, empty):
    """The function that takes the place of segment_sum or segment_prod."""

    def segment(data, segment_ids, name=None):
        with Scope(name, op_type) as scope:
            data, ids = tensor(data), tensor(segment_ids)
            need(is_real_or_complex(data.dtype) and ids.dtype.is_integer)
            need(ids.shape.ndims in (None, 1) and data.shape.ndims != 0)
            if ids.shape.ndims is not None:
                _need_prefix(ids.shape, data.shape)

            def forward(data, ids):
                return _reduce_sorted(data, ids, combine, empty)
            result = like_op(op_type, forward, [data, ids])
            result.set_shape(_output_shape(None, data.shape, ids.shape.with_rank(1)))
            return scope.named(result)
    return segment


def _reduce_sorted(data, ids, combine, empty):
    """Ids that do not ascend from 0 or more make a CPU raise, as the original does."""
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops, check_ops, math_ops
    checks = []
    if not (data.shape.ndims and ids.shape.is_fully_defined() and data.shape[:1].is_fully_defined()):
        checks = [check_ops.assert_equal(array_ops.shape(data)[:1], array_ops.shape(ids))]
    with ops.control_dependencies(checks):
        keys = array_ops.identity(cast(ids, dtypes.int64))
    before = array_ops.concat([math_ops.minimum(keys[:1], 0), keys[:-1]], 0)
    bad = math_ops.logical_or(keys < before, keys < 0)
    rows = array_ops.gather(data, reduce.refuse(bad))
    none = array_ops.zeros([1], dtypes.int64) - 1
    count = math_ops.maximum(array_ops.concat([none, keys], 0)[-1] + 1, 0)
    return reduce.sorted_runs(rows, keys, count, combine, empty)[0]
