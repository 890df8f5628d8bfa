"""bincount with weights. Without weights, counting is independent of the order and stays TensorFlow's.

use_original_unless(): a call that does not meet the condition is left to the original op. exact_sum: sums without
rounding, so that their order does not matter.
"""

from tfdeterminism.patches import chunked, exact_sum
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    constant,
    dims,
    original,
    reshape,
    select,
    tensor,
    use_original_unless,
    with_gradient_of_op,
)


def install(replacements):
    from tensorflow.python.ops import gen_math_ops, math_ops
    replacements.replace(gen_math_ops, "bincount", _bincount)
    replacements.replace(gen_math_ops, "dense_bincount", _dense_bincount)
    replacements.note_public_caller(getattr(math_ops, "bincount", None))


def _bincount(arr, size, weights, name=None):
    from tensorflow.python.framework import dtypes
    with OpNameScope(name, "Bincount") as scope:
        values, size, weights = tensor(arr, dtypes.int32), tensor(size, dtypes.int32), tensor(weights)
        _require_weighted(values, size, weights)
        bins = _as_op("Bincount", values, weights, size, 1)
        bins.set_shape([_static_size(size)])
        return scope.named(bins)


def _dense_bincount(input, size, weights, binary_output=False, name=None):
    from tensorflow.python.framework import dtypes
    with OpNameScope(name, "DenseBincount") as scope:
        values, weights = tensor(input), tensor(weights)
        size = tensor(size, values.dtype)
        use_original_unless(not binary_output and values.dtype.is_integer and values.shape.ndims in (1, 2))
        _require_weighted(values, size, weights)
        if values.shape.ndims == 1:
            bins = _as_op("DenseBincount", values, weights, size, 1, "dense_bincount")
            bins.set_shape([_static_size(size)])
            return scope.named(bins)
        batch = cast(dims(values)[0], dtypes.int64)
        bins = _as_op("DenseBincount", values, weights, size, batch, "dense_bincount")
        bins = reshape(bins, [batch, cast(size, dtypes.int64)])
        bins.set_shape([values.shape.as_list()[0], _static_size(size)])
        return scope.named(bins)


def _static_size(size):
    static_size = constant(size)
    return None if static_size is None else int(static_size)


def _require_weighted(values, size, weights):
    """Require floating-point weights, one for each value; whether there are any may be known at run time only."""
    use_original_unless(weights.dtype.is_floating and size.shape.is_compatible_with([]))
    use_original_unless(_static_size(size) is None or _static_size(size) >= 0)
    use_original_unless(weights.shape.num_elements() != 0 or values.shape.num_elements() == 0)
    if weights.shape.is_fully_defined():
        use_original_unless(values.shape.is_compatible_with(weights.shape))


def _as_op(op_type, values, weights, size, batch, function="bincount"):
    """Return the bins, without a gradient, as the op has none."""
    def forward(values, weights):
        counts = _counts(function, values, size) if exact_sum.is_needed() else None
        return _bins(values, weights, size, batch, counts)
    return with_gradient_of_op(op_type, forward, [values, weights])


def _counts(function, values, size):
    """Return the counts without weights (float64), by the original, whose error reports negative values."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_math_ops
    with exact_sum.name_scope():
        counts = original(gen_math_ops, function)(values, size, array_ops.zeros([0], dtypes.int32))
    return cast(array_ops.reshape(counts, [-1]), dtypes.float64)


def _bins(values, weights, size, batch, counts):
    """Return the sums of the weights in batch * size bins.  Values from size on are ignored, negative ones raise."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    size = cast(size, dtypes.int64)
    bins = size + 1  # with a bin for ignored values
    if counts is not None:
        ignored = array_ops.zeros([batch, 1], counts.dtype)
        counts = array_ops.concat([array_ops.reshape(counts, [batch, size]), ignored], 1)
        counts = array_ops.reshape(counts, [-1])
    width = None if isinstance(batch, int) else cast(dims(values)[1], dtypes.int64)
    flat = values if values.shape.ndims == 1 else array_ops.reshape(values, [-1])

    def keys(start, stop):
        return _keys(chunked.chunk_of(flat)(start, stop), start, size, width, reject_negative=counts is None)
    rows = array_ops.expand_dims(_to_weight_vector(flat, weights), 1)
    addends = exact_sum.Addends(exact_sum.size(flat), 1, rows.dtype, chunked.chunk_of(rows), keys)
    sums = exact_sum.sum_by_key(addends, batch * bins, counts)
    return array_ops.reshape(array_ops.reshape(sums, [batch, bins])[:, :-1], [-1])


def _keys(values, start, size, width, reject_negative):
    """Return the bin of each value; the values begin at index `start`, in rows of `width` (None: one row)."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    values = cast(values, dtypes.int64)
    keys = math_ops.minimum(values, size)
    if width is not None:
        offset = cast(0 if start is None else start, dtypes.int64)
        indices = math_ops.range(array_ops.size(keys, out_type=dtypes.int64)) + offset
        keys = keys + indices // width * (size + 1)
    if reject_negative:  # the values were not checked before: a key out of range raises on a CPU
        keys = select(values < 0, array_ops.zeros_like(keys) + dtypes.int64.max, keys)
    return keys


def _to_weight_vector(keys, weights):
    """Return the weights as a vector; ones if there are none, which may be known at run time only."""
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops, check_ops
    flat = array_ops.reshape(weights, [-1])
    if weights.shape.num_elements() is not None:
        return flat
    weight_count, key_count = array_ops.size(flat), array_ops.size(keys)
    with ops.control_dependencies([check_ops.assert_equal(weight_count * (weight_count - key_count), 0)]):
        return array_ops.concat([flat, array_ops.ones_like(keys, flat.dtype)], 0)[:key_count]
