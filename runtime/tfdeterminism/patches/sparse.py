"""sparse_dense_matmul: the rows of the product, one for each nonzero, are summed exactly instead of atomically."""

from tfdeterminism.patches import chunked, exact_sum
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    constant,
    dims,
    fill_like,
    is_real_or_complex,
    select,
    tensor,
    use_original_unless,
    with_gradient_of_op,
)
from tfdeterminism.patches.release import version


def install(replacements):
    from tensorflow.python.ops import gen_sparse_ops, sparse_ops
    replacements.replace(gen_sparse_ops, "sparse_tensor_dense_mat_mul", _matmul)
    replacements.note_public_caller(getattr(sparse_ops, "sparse_tensor_dense_matmul", None))


def _matmul(a_indices, a_values, a_shape, b, adjoint_a=False, adjoint_b=False, name=None):
    from tensorflow.python.framework import dtypes
    with OpNameScope(name, "SparseTensorDenseMatMul") as scope:
        indices, values, shape, b = tensor(a_indices), tensor(a_values), tensor(a_shape, dtypes.int64), tensor(b)
        use_original_unless(is_real_or_complex(values.dtype) and values.dtype == b.dtype and indices.dtype.is_integer)
        _require_shapes(indices.shape, values.shape, shape.shape, b.shape)

        def forward(indices, values, shape, b):
            return _product(indices, values, shape, b, adjoint_a, adjoint_b)
        attributes = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b, "T": values.dtype, "Tindices": indices.dtype}
        result = with_gradient_of_op("SparseTensorDenseMatMul", forward, [indices, values, shape, b], attributes)
        result.set_shape(_output_shape(shape, b.shape, adjoint_a, adjoint_b))
        return scope.named(result)


def _product(indices, values, shape, b, adjoint_a, adjoint_b):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    indices = cast(indices, dtypes.int64)
    row, column = (indices[:, 1], indices[:, 0]) if adjoint_a else (indices[:, 0], indices[:, 1])
    count = _rows(shape, 1 if adjoint_a else 0)
    if adjoint_a and _conjugates():
        values = math_ops.conj(values)
    if adjoint_b:
        b = math_ops.conj(array_ops.transpose(b))
    # A negative row is an error, not ignored: `count` is an invalid key.
    row = select(row < 0, fill_like(count, row), row)
    values = _nan_outside(values, column, array_ops.shape(b, out_type=dtypes.int64)[0])
    columns, factors = chunked.chunk_of(column), chunked.chunk_of(array_ops.expand_dims(values, 1))

    def products(start, stop):
        rows = array_ops.gather(b, columns(start, stop))
        return exact_sum.to_float32(rows) * exact_sum.to_float32(factors(start, stop))
    dtype = exact_sum.to_float32(values).dtype
    addends = exact_sum.Addends(exact_sum.size(row), dims(b)[1], dtype, products, chunked.chunk_of(row))
    return cast(exact_sum.sum_by_key(addends, count), values.dtype)


def _rows(shape, axis):
    """Return shape[axis], as a constant if known."""
    from tensorflow.python.framework import constant_op
    static_shape = constant(shape)
    return shape[axis] if static_shape is None else constant_op.constant(static_shape[axis])


def _nan_outside(values, column, size):
    """Return the values, with NaN for a column out of range, as the original does on a GPU.

    A gather there would return zeros.
    """
    from tensorflow.python.ops import array_ops, math_ops
    is_inside = math_ops.logical_and(column >= 0, column < size)
    return select(is_inside, values, array_ops.zeros_like(values) + cast(float("nan"), values.dtype))


def _conjugates():
    """Return whether adjoint_a conjugates: until 2.4 the op only transposed, contrary to its documentation."""
    return version() >= (2, 5)


def _require_shapes(indices, values, shape, b):
    use_original_unless(indices.is_compatible_with([None, 2]) and values.ndims in (None, 1) and b.ndims in (None, 2))
    use_original_unless(shape.is_compatible_with([2]))
    if indices.ndims is not None and values.ndims is not None:
        use_original_unless(indices[:1].is_compatible_with(values))


def _output_shape(shape, b, adjoint_a, adjoint_b):
    from tensorflow.python.framework import tensor_shape, tensor_util
    a = tensor_util.constant_value_as_shape(shape).with_rank(2).as_list()
    b = b.with_rank(2).as_list()
    use_original_unless(None in (a[0 if adjoint_a else 1], b[1 if adjoint_b else 0])
                        or a[0 if adjoint_a else 1] == b[1 if adjoint_b else 0])
    return tensor_shape.TensorShape([a[1 if adjoint_a else 0], b[0 if adjoint_b else 1]])
