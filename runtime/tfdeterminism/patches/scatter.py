"""scatter_nd and tensor_scatter_nd_add, _sub, _update, where indices repeat.

Index tuples become row numbers, and rows are reduced as in `reduce`.  Of several updates of one element the last in the
order of the input wins (TensorFlow does not specify it; its CPU kernels do the same).  Scattered minima and maxima do
not depend on the order and stay TensorFlow's.
"""

from tfdeterminism.patches import exact_sum, reduce
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    check_at_run_time,
    constant,
    dims,
    is_real_or_complex,
    original,
    product,
    reshape,
    select,
    tensor,
    use_original_unless,
    with_gradient_of_op,
)


def install_scatter_nd(replacements):
    from tensorflow.python.ops import gen_array_ops
    replacements.replace(gen_array_ops, "scatter_nd", _scatter_nd)


def install_tensor_scatter(replacements):
    from tensorflow.python.ops import array_ops, gen_array_ops, math_ops
    for name, op_type, combine in (("tensor_scatter_add", "TensorScatterAdd", math_ops.add),
                                   ("tensor_scatter_sub", "TensorScatterSub", math_ops.subtract),
                                   ("tensor_scatter_update", "TensorScatterUpdate", None)):
        replacements.replace(gen_array_ops, name, _tensor_scatter(op_type, combine))
    replacements.note_public_caller(getattr(array_ops, "tensor_scatter_nd_update", None))


def _scatter_nd(indices, updates, shape, bad_indices_policy="", name=None):
    with OpNameScope(name, "ScatterNd") as scope:
        indices, updates = tensor(indices), tensor(updates)
        use_original_unless(indices.dtype.is_integer)
        shape = tensor(shape, indices.dtype)
        use_original_unless(is_real_or_complex(updates.dtype) and not bad_indices_policy)
        output = constant_shape(shape)
        require_compatible_shapes(indices.shape, updates.shape, output)

        def forward(indices, updates, shape):
            return _sums(FlatIndices(indices, shape), updates)[0]
        result = with_gradient_of_op("ScatterNd", forward, [indices, updates, shape])
        result.set_shape(output)
        return scope.named(result)


def _tensor_scatter(op_type, combine):
    """Return the replacement of a tensor_scatter op.

    combine(tensor, sums of updates): returns the result; if combine is None, the last update of each row wins.
    """

    def scatter(tensor, indices, updates, bad_indices_policy="", name=None):
        with OpNameScope(name, op_type) as scope:
            target, indices, updates = _tensors(tensor, indices, updates)
            use_original_unless(indices.dtype.is_integer and (combine is None or is_real_or_complex(target.dtype)))
            use_original_unless(target.dtype == updates.dtype and not bad_indices_policy and target.shape.ndims != 0)
            require_compatible_shapes(indices.shape, updates.shape, target.shape)

            def forward(target, indices, updates):
                from tensorflow.python.ops import array_ops
                flat = FlatIndices(indices, array_ops.shape(target))
                if combine is None:
                    return _apply_last_updates(flat, target, updates)
                sums, present = _sums(flat, updates)
                return _where_present(flat, present, combine(target, sums), target)
            result = with_gradient_of_op(op_type, forward, [target, indices, updates])
            result.set_shape(target.shape)
            return scope.named(result)
    return scatter


def _tensors(*values):
    return [tensor(value) for value in values]


class FlatIndices(object):
    """Index tuples [..., K] as row numbers (`keys`) of the indexed shape, flattened to [rows, width].

    Args:
        indices: the index tuples.
        shape: the indexed shape.
    """

    def __init__(self, indices, shape):
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, math_ops
        self.given_indices = indices
        self.shape, self.indices = cast(shape, dtypes.int64), cast(indices, dtypes.int64)
        depth = indices.shape.as_list()[-1] if indices.shape.ndims else None
        depth = array_ops.shape(indices)[-1] if depth is None else depth
        self.outer, self.inner = self.shape[:depth], self.shape[depth:]
        self.rows, self.width = self._size(shape, depth)
        count = product(dims(indices)[:-1]) if indices.shape.ndims else array_ops.size(indices) // depth
        tuples = array_ops.reshape(self.indices, [count, depth])
        is_outside = math_ops.logical_or(tuples < 0, tuples >= self.outer)
        self.keys = array_ops.zeros([count], dtypes.int64)
        if isinstance(depth, int):
            # Column by column: old versions have no reductions of 64-bit integers on a GPU.
            for column in range(depth):
                self.keys = self.keys * self.outer[column] + tuples[:, column]
        else:
            self.keys = math_ops.reduce_sum(
                tuples * math_ops.cumprod(self.outer, exclusive=True, reverse=True), 1)
        is_invalid = math_ops.logical_or(math_ops.reduce_any(is_outside, 1), self.keys >= self.rows)
        self.keys = select(is_invalid, array_ops.zeros_like(self.keys) - 1, self.keys)

    def _size(self, shape, depth):
        """Return the number of rows and the size of each, as ints where the shape is known."""
        from tensorflow.python.ops import math_ops
        static_shape = constant(shape)
        if static_shape is not None and isinstance(depth, int):
            return product(int(n) for n in static_shape[:depth]), product(int(n) for n in static_shape[depth:])
        return math_ops.reduce_prod(self.outer), math_ops.reduce_prod(self.inner)

    def count(self):
        """Return the number of tuples of each row (float64), by TensorFlow's own op, which checks the indices."""
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, gen_array_ops
        ones = array_ops.ones(array_ops.shape(self.given_indices)[:-1], dtypes.int32)
        with exact_sum.name_scope():
            shape = cast(self.outer, self.given_indices.dtype)
            counts = original(gen_array_ops, "scatter_nd")(self.given_indices, ones, shape)
        return cast(array_ops.reshape(counts, [-1]), dtypes.float64)

    def updates(self, updates):
        """Return the updates as [number of tuples, width]; an error at run time if their shape does not match."""
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops
        if not (updates.shape.is_fully_defined() and self.indices.shape.is_fully_defined()):
            actual, outer = array_ops.shape(updates, out_type=dtypes.int64), array_ops.shape(self.indices)[:-1]
            expected = array_ops.concat([cast(outer, dtypes.int64), self.inner], 0)
            updates = check_at_run_time(
                updates, vectors_equal(actual, expected), "updates.shape must be indices.shape[:-1] +",
                "shape[indices.shape[-1]:], which is", expected, "but got updates.shape", actual)
        return _grid(updates, array_ops.size(self.keys), self.width)

    def shaped(self, rows):
        """Return rows in the indexed shape."""
        from tensorflow.python.ops import array_ops
        static_shape = constant_shape(self.shape)
        # Ints if known: until 2.4 vectorized_map does not accept 64-bit shapes.
        if static_shape.is_fully_defined():
            return reshape(rows, static_shape.as_list())
        return array_ops.reshape(rows, self.shape)


def _sums(flat, updates):
    """Return the sum of the updates of each row, in the indexed shape; and which rows have updates."""
    counts = flat.count()
    sums = exact_sum.sum_by_key(exact_sum.Addends.from_rows(flat.updates(updates), flat.keys), flat.rows, counts)
    return flat.shaped(sums), counts > 0


def _apply_last_updates(flat, target, updates):
    """Return the target with the last update of each row."""
    from tensorflow.python.ops import array_ops
    keys, order = reduce.sort(flat.keys, flat.rows)
    last, present = reduce.last_rows(keys, flat.rows), flat.count() > 0
    rows = array_ops.gather(flat.updates(updates), order)
    old_rows = _grid(target, flat.rows, flat.width)
    # One gather out of the updates followed by the old rows.
    old_positions = array_ops.size(keys, out_type=last.dtype) + reduce.positions(last)
    return flat.shaped(array_ops.gather(array_ops.concat([rows, old_rows], 0), select(present, last, old_positions)))


def _where_present(flat, present, new_values, old_values):
    """Return new rows if they have updates, otherwise the old ones: adding a zero would turn -0.0 into 0.0."""
    from tensorflow.python.ops import array_ops
    candidates = array_ops.concat([_grid(value, flat.rows, flat.width) for value in (new_values, old_values)], 0)
    # Not a select: optimizers drop a branch that is never taken, and with it the check of the indices.
    row = reduce.positions(present)
    row = select(present, row, row + array_ops.size(row, out_type=row.dtype))
    return flat.shaped(array_ops.gather(candidates, row))


def _grid(value, rows, width):
    from tensorflow.python.framework import dtypes
    sizes = [size if isinstance(size, int) else constant(size) for size in (rows, width)]
    return reshape(value, [cast(size, dtypes.int64) if static_size is None else int(static_size)
                           for size, static_size in zip((rows, width), sizes)])


def vectors_equal(first, second):
    """Return whether two vectors are equal, in size too."""
    from tensorflow.python.ops import array_ops, math_ops
    size = math_ops.minimum(array_ops.size(first), array_ops.size(second))
    return math_ops.logical_and(math_ops.equal(array_ops.size(first), array_ops.size(second)),
                                math_ops.reduce_all(math_ops.equal(first[:size], second[:size])))


def constant_shape(shape):
    from tensorflow.python.framework import tensor_util
    return tensor_util.constant_value_as_shape(shape)


def require_compatible_shapes(indices, updates, output):
    """Check the static shapes, as far as known: updates.shape == indices.shape[:-1] + output.shape[K:]."""
    if indices.ndims is None:
        return
    use_original_unless(indices.ndims >= 1)
    depth = indices.as_list()[-1]
    if updates.ndims is not None:
        use_original_unless(updates.ndims >= indices.ndims - 1)
        use_original_unless(updates[:indices.ndims - 1].is_compatible_with(indices[:-1]))
    use_original_unless(depth != 0)
    if depth is None or output.ndims is None:
        return
    use_original_unless(depth <= output.ndims)
    if updates.ndims is not None:
        use_original_unless(updates[indices.ndims - 1:].is_compatible_with(output[depth:]))
    use_original_unless(0 not in output.as_list() or 0 in indices.as_list()[:-1])
