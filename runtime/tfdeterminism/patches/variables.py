"""Scatters into variables, where indices repeat.

The updates of each element are combined to one, as in the module reduce; then TensorFlow's own op writes every element
once. So no order is left, and the variable's lock, checks and return value are the original's. Of several values for
one element the last wins, as in TensorFlow's kernels for the CPU. Scattered minima and maxima do not depend on the
order.
"""

from tfdeterminism.patches import reduce
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    check_at_run_time,
    dims,
    is_real_or_complex,
    reshape,
    select,
    tensor,
    use_original_unless,
    without_tape,
)
from tfdeterminism.patches.scatter import FlatIndices, constant_shape, require_compatible_shapes, vectors_equal

_LIMIT = 20  # 2 ** 20 elements are enough to check whether an index is in range, however large the variable is


def install_resource(replacements):
    from tensorflow.python.ops import gen_resource_variable_ops
    for name, combine in _combinations():
        _replace(replacements, gen_resource_variable_ops, "resource_scatter_" + name, combine, _by_row)


def install_ref(replacements):
    from tensorflow.python.ops import gen_state_ops
    for name, combine in _combinations():
        _replace(replacements, gen_state_ops, "scatter_" + name, combine, _by_row)
        _note_public_caller(replacements, "scatter_" + name)


def install_nd(replacements):
    from tensorflow.python.ops import gen_state_ops
    for name, combine in _combinations():
        if name in ("add", "sub", "update"):
            _replace(replacements, gen_state_ops, "resource_scatter_nd_" + name, combine, _by_tuple)
            _replace(replacements, gen_state_ops, "scatter_nd_" + name, combine, _by_tuple)
            _note_public_caller(replacements, "scatter_nd_" + name)


def _combinations():
    """Return how each op combines several updates of one element.

    Subtrahends are added, divisors multiplied first.
    """
    from tensorflow.python.ops import math_ops
    return (("add", math_ops.add), ("sub", math_ops.add), ("mul", math_ops.multiply), ("div", math_ops.multiply),
            ("update", None))


def _note_public_caller(replacements, name):
    from tensorflow.python.ops import state_ops
    replacements.note_public_caller(getattr(state_ops, name, None))


def _replace(replacements, module, name, combine, combine_updates):
    """Replace the op `module.name`.  combine: of two updates of one element; None: the last one wins.

    combine_updates: _by_row if an index is a row number, _by_tuple if it is a tuple of indices.
    """
    original = getattr(module, name, None)

    def scatter(indices, updates, **others):
        # The other arguments are passed on: the variable, the name, whether to lock.
        variable = others["resource"] if "resource" in others else others["ref"]
        use_original_unless(hasattr(variable, "dtype"))
        indices, updates = tensor(indices), tensor(updates, _dtype(variable))
        use_original_unless(indices.dtype.is_integer and (combine is None or is_real_or_complex(updates.dtype)))
        with OpNameScope(None, "EachPlaceOnce"), without_tape():
            indices, updates = combine_updates(variable, indices, updates, combine)
        return original(indices=indices, updates=updates, **others)  # type: ignore[misc]  # else it was not replaced
    replacements.replace(module, name, scatter)


def _by_row(variable, indices, updates, combine):
    """Combine updates [..., rest of the variable's shape] of rows [...], so that each index occurs once."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    use_original_unless(indices.shape.num_elements() not in (0, 1))
    rows = _rows(variable, indices, updates)
    keys = array_ops.reshape(cast(indices, dtypes.int64), [-1])
    keys = _check_in_range(keys, _shape(variable)[0])
    rows, last = reduce.reduce_unique(rows, keys, combine, narrow=indices.dtype == dtypes.int32)
    return array_ops.gather(keys, last), rows  # last: the position of the last update of each index


def _rows(variable, indices, updates):
    """Return the updates as [number of indices, ...].

    An error is raised if their shape does not match and they are not a scalar.
    """
    from tensorflow.python.ops import array_ops
    has_ranks = indices.shape.ndims is not None and updates.shape.ndims is not None
    if updates.shape.ndims == 0 or not has_ranks:
        updates = _broadcast_scalar(variable, indices, updates)
    if has_ranks and updates.shape.ndims:
        use_original_unless(updates.shape[:indices.shape.ndims].is_compatible_with(indices.shape))
    if not (has_ranks and updates.shape.is_fully_defined() and indices.shape.is_fully_defined()):
        leading_shape, index_shape = array_ops.shape(updates)[:array_ops.rank(indices)], array_ops.shape(indices)
        updates = check_at_run_time(
            updates, vectors_equal(leading_shape, index_shape),
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got",
            "updates.shape", array_ops.shape(updates), "indices.shape", index_shape)
    row_shape = array_ops.shape(updates)[array_ops.rank(indices):]
    return array_ops.reshape(updates, array_ops.concat([[array_ops.size(indices)], row_shape], 0))


def _broadcast_scalar(variable, indices, updates):
    """Broadcast updates that are, or may be at run time, a scalar, which updates every element."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    full_shape = array_ops.concat([array_ops.shape(indices), cast(_shape(variable)[1:], dtypes.int32)], 0)
    if updates.shape.ndims == 0:
        return array_ops.fill(full_shape, updates)
    # The whole shape in front of a scalar's empty one; nothing in front of any other.
    is_scalar = cast(math_ops.equal(array_ops.rank(updates), 0), dtypes.int32)
    missing_shape = full_shape[:array_ops.size(full_shape) * is_scalar]
    target_shape = array_ops.concat([missing_shape, array_ops.shape(updates)], 0)
    return array_ops.broadcast_to(updates, target_shape)


def _by_tuple(variable, indices, updates, combine):
    """Combine updates [..., rest of the variable's shape] of tuples [..., K], so that each tuple occurs once."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops
    use_original_unless(indices.shape.ndims is None or indices.shape[:-1].num_elements() not in (0, 1))
    shape = _shape(variable)
    require_compatible_shapes(indices.shape, updates.shape, constant_shape(shape))
    flat = FlatIndices(indices, shape)
    depth = dims(indices)[-1] if indices.shape.ndims else array_ops.shape(indices)[-1]
    tuples = reshape(cast(indices, dtypes.int64), [array_ops.size(flat.keys), depth])
    # All tuples out of range have one key: a CPU raises for it, a GPU ignores it.
    keys = _check_tuples_in_range(flat, tuples)
    rows, last = reduce.reduce_unique(flat.updates(updates), keys, combine, narrow=False)
    inner = cast(flat.inner, dtypes.int32)
    rows = array_ops.reshape(rows, array_ops.concat([[array_ops.size(last)], inner], 0))
    return array_ops.gather(tuples, last), rows


def _check_in_range(keys, rows):
    """Return the keys; one out of range raises on a CPU, with its position in the input.

    It raises before the variable changes: if the op itself raised, the original would be called on a changed variable.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    rows = cast(rows, dtypes.int64)
    is_inside = math_ops.logical_and(keys >= 0, keys < rows)
    elements = array_ops.zeros(array_ops.stack([math_ops.minimum(rows, 2 ** _LIMIT)]), dtypes.bool)
    no_value = array_ops.gather(elements, select(is_inside, array_ops.zeros_like(keys), keys))
    return keys + cast(no_value, dtypes.int64)


def _check_tuples_in_range(flat, tuples):
    """Return the keys of the tuples, like `_check_in_range`; the error shows the tuple."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    depth = tuples.shape.as_list()[1]
    max_size = 2 ** (_LIMIT // max(_LIMIT if depth is None else depth, 1))
    elements = array_ops.zeros(math_ops.minimum(flat.outer, max_size))
    no_value = array_ops.gather_nd(elements, select(flat.keys < 0, tuples, array_ops.zeros_like(tuples)))
    return flat.keys + cast(no_value, dtypes.int64)


def _dtype(variable):
    """Return the dtype of a reference variable, for its updates; None for a resource, which does not have it."""
    from tensorflow.python.framework import dtypes
    return None if variable.dtype == dtypes.resource else variable.dtype.base_dtype


def _shape(variable):
    """Return the variable's shape (int64), a constant if known, without reading its value."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, resource_variable_ops
    if variable.dtype == dtypes.resource:
        return resource_variable_ops.variable_shape(variable, out_type=dtypes.int64)
    return array_ops.shape(variable._ref() if hasattr(variable, "_ref") else variable, out_type=dtypes.int64)
