"""bincount with weights.  Without weights it counts, which has no order, and stays TensorFlow's."""

from tfdeterminism.patches import reduce
from tfdeterminism.patches.common import Scope, cast, constant, dims, like_op, need, reshape, select, tensor


def install(session):
    from tensorflow.python.ops import gen_math_ops, math_ops
    session.replace(gen_math_ops, "bincount", _bincount)
    session.replace(gen_math_ops, "dense_bincount", _dense_bincount)
    session.reaches(getattr(math_ops, "bincount", None))


def _bincount(arr, size, weights, name=None):
    from tensorflow.python.framework import dtypes
    with Scope(name, "Bincount") as scope:
        values, size, weights = tensor(arr, dtypes.int32), tensor(size, dtypes.int32), tensor(weights)
        _need_weighted(values, size, weights)
        bins = _as_op("Bincount", values, weights, size, 1)
        bins.set_shape([_known(size)])
        return scope.named(bins)


def _dense_bincount(input, size, weights, binary_output=False, name=None):
    from tensorflow.python.framework import dtypes
    with Scope(name, "DenseBincount") as scope:
        values, weights = tensor(input), tensor(weights)
        size = tensor(size, values.dtype)
        need(not binary_output and values.dtype.is_integer and values.shape.ndims in (1, 2))
        _need_weighted(values, size, weights)
        if values.shape.ndims == 1:
            bins = _as_op("DenseBincount", values, weights, size, 1)
            bins.set_shape([_known(size)])
            return scope.named(bins)
        batch = dims(values)[0]
        bins = _as_op("DenseBincount", values, weights, size, batch)
        bins = reshape(bins, [batch, cast(size, dtypes.int32)])
        bins.set_shape([values.shape.as_list()[0], _known(size)])
        return scope.named(bins)


def _known(size):
    known = constant(size)
    return None if known is None else int(known)


def _need_weighted(values, size, weights):
    """Floating-point weights, one for each value; that there are none may turn out only when it runs."""
    need(weights.dtype.is_floating and size.shape.is_compatible_with([]))
    need(_known(size) is None or _known(size) >= 0)
    need(weights.shape.num_elements() != 0 or values.shape.num_elements() == 0)
    if weights.shape.is_fully_defined():
        need(values.shape.is_compatible_with(weights.shape))


def _as_op(op_type, values, weights, size, batch):
    """The bins, out of what has no gradient and says so, as the op."""
    return like_op(op_type, lambda values, weights: _bins(values, weights, size, batch), [values, weights])


def _bins(values, weights, size, batch):
    """The sums of the weights in batch * size bins.  Values from size on are dropped, negative ones refused."""
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import array_ops, check_ops, math_ops
    values = array_ops.reshape(values, [-1])
    values, size, batch = (cast(value, dtypes.int64) for value in (values, size, batch))
    flat = array_ops.reshape(weights, [-1])
    if weights.shape.num_elements() is None:
        # No weights mean ones: then the first of these, one for each value, are the ones.
        many, given = array_ops.size(values), array_ops.size(flat)
        with ops.control_dependencies([check_ops.assert_equal(given * (given - many), 0)]):
            flat = array_ops.concat([flat, array_ops.ones_like(values, flat.dtype)], 0)[:many]
    width = math_ops.maximum(array_ops.size(values, out_type=dtypes.int64) // math_ops.maximum(batch, 1), 1)
    keys = reduce.positions(values) // width * size + values
    keys = select(values >= size, array_ops.zeros_like(keys) + batch * size, keys)
    rows = array_ops.expand_dims(flat, 1)
    bins, _ = reduce.by_key(rows, keys, values < 0, batch * size, math_ops.add, 0)
    return array_ops.reshape(bins, [-1])
