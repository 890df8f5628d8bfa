"""bincount with weights.  Without weights it counts, which has no order, and stays TensorFlow's."""

from tfdeterminism.patches import exact, pieces
from tfdeterminism.patches.common import Scope, cast, constant, dims, like_op, need, original, reshape, select, tensor


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
            bins = _as_op("DenseBincount", values, weights, size, 1, "dense_bincount")
            bins.set_shape([_known(size)])
            return scope.named(bins)
        batch = cast(dims(values)[0], dtypes.int64)
        bins = _as_op("DenseBincount", values, weights, size, batch, "dense_bincount")
        bins = reshape(bins, [batch, cast(size, dtypes.int64)])
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


def _as_op(op_type, values, weights, size, batch, function="bincount"):
    """The bins, out of what has no gradient and says so, as the op."""
    def forward(values, weights):
        many = _counts(function, values, size) if exact.needed() else None
        return _bins(values, weights, size, batch, many)
    return like_op(op_type, forward, [values, weights])


def _counts(function, values, size):
    """Without weights the original counts (float64), which has no order, and has the words for negative values."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_math_ops
    with exact.scope():
        counts = original(gen_math_ops, function)(values, size, array_ops.zeros([0], dtypes.int32))
    return cast(array_ops.reshape(counts, [-1]), dtypes.float64)


def _bins(values, weights, size, batch, many):
    """The sums of the weights in batch * size bins.  Values from size on are dropped, negative ones refused."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    size = cast(size, dtypes.int64)
    bins = size + 1  # what is dropped has a bin of its own
    if many is not None:
        many = array_ops.concat([array_ops.reshape(many, [batch, size]), array_ops.zeros([batch, 1], many.dtype)], 1)
        many = array_ops.reshape(many, [-1])
    width = None if isinstance(batch, int) else cast(dims(values)[1], dtypes.int64)
    flat = values if values.shape.ndims == 1 else array_ops.reshape(values, [-1])

    def keys(start, stop):
        return _keys(pieces.of(flat)(start, stop), start, size, width, refused=many is None)
    rows = array_ops.expand_dims(_one_for_each(flat, weights), 1)
    addends = exact.Addends(exact.size(flat), 1, rows.dtype, pieces.of(rows), keys)
    sums = exact.by_key(addends, batch * bins, many)
    return array_ops.reshape(array_ops.reshape(sums, [batch, bins])[:, :-1], [-1])


def _keys(values, start, size, width, refused):
    """The bin of each of the values, which stand from start on in rows of `width` (None: all in one)."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    values = cast(values, dtypes.int64)
    keys = math_ops.minimum(values, size)
    if width is not None:
        before = cast(0 if start is None else start, dtypes.int64)
        places = math_ops.range(array_ops.size(keys, out_type=dtypes.int64)) + before
        keys = keys + places // width * (size + 1)
    if refused:  # nothing has refused negative values: what is out of range is an error on a CPU
        keys = select(values < 0, array_ops.zeros_like(keys) + dtypes.int64.max, keys)
    return keys


def _one_for_each(keys, weights):
    """The weights as a vector; that there are none, which may turn out only when it runs, means ones."""
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops, check_ops
    flat = array_ops.reshape(weights, [-1])
    if weights.shape.num_elements() is not None:
        return flat
    given, wanted = array_ops.size(flat), array_ops.size(keys)
    with ops.control_dependencies([check_ops.assert_equal(given * (given - wanted), 0)]):
        return array_ops.concat([flat, array_ops.ones_like(keys, flat.dtype)], 0)[:wanted]
