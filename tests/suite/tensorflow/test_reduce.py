"""Cases of sums, counts and products with sparse matrices.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import numpy as np
import tensorflow as tf
from tfdet_probe import case


def in_order(rows, columns):
    """Row by row, as sparse tensors are."""
    order = np.lexsort((columns, rows))
    return np.stack([rows[order], columns[order]], axis=1)


@case("reduce-sum", ops=["Sum"])
def reduce_sum(make):
    x = make.uniform((1024, 1024))
    return make.forward(lambda x: [tf.reduce_sum(x), tf.reduce_sum(x, 0), tf.reduce_sum(x, 1)], [x])


@case("reduce-mean", ops=["Mean"])
def reduce_mean(make):
    x = make.uniform((1024, 1024))
    return make.forward(lambda x: [tf.reduce_mean(x), tf.reduce_mean(x, 0), tf.reduce_mean(x, 1)], [x])


@case("bincount", ops=["Bincount|DenseBincount"], modes=("eager", "session"))
def bincount(make):
    values = make.integers(0, 100, (100000,))
    return make.forward(lambda v: tf.math.bincount(v), [values])


@case("bincount", ops=["Bincount|DenseBincount|UnsortedSegmentSum"])
def bincount_weighted(make):
    """With weights it sums floats; before 2.4 by an unsorted segment sum."""
    values, weights = make.integers(0, 100, (1000000,)), make.uniform((1000000,))
    return make.forward(lambda v, w: tf.math.bincount(v, weights=w), [values, weights])


@case("bincount", ops=["DenseBincount"], modes=("eager", "session"))
def bincount_weighted_rows(make):
    """What tf.math.bincount(..., axis=-1) calls: each row has bins of its own, and GPUs take weights."""
    values, weights = make.integers(0, 100, (100, 10000)), make.uniform((100, 10000))
    return make.forward(lambda v, w: tf.raw_ops.DenseBincount(input=v, size=100, weights=w, binary_output=False),
                        [values, weights])


@case("histogram-fixed-width", ops=["HistogramFixedWidth"], modes=("eager", "session"))
def histogram(make):
    values = make.uniform((100000,))
    return make.forward(lambda v: tf.histogram_fixed_width(v, [-1.0, 1.0], nbins=100), [values])


@case("svd-one-column", ops=["Svd"], modes=("eager", "function"))
def svd_one_column(make):
    matrix = make.uniform((64, 1))
    return make.forward(lambda m: list(tf.linalg.svd(m)), [matrix])


@case("sparse-dense-matmul", ops=["SparseTensorDenseMatMul"], modes=("eager", "session"),
      dtype=["float32", "float64"])
def sparse_dense_matmul(make, dtype):
    rows, columns = make.integers(0, 64, (20000,), "int64"), make.integers(0, 512, (20000,), "int64")
    cells = in_order(rows, columns)
    values, dense = make.uniform((20000,), dtype), make.uniform((512, 64), dtype)
    return make.forward(lambda v, d: tf.sparse.sparse_dense_matmul(
        tf.SparseTensor(cells, v, [64, 512]), d), [values, dense])


@case("sparse-dense-matmul", ops=["SparseTensorDenseMatMul"], modes=("function",))
def sparse_dense_matmul_to_dense(make):
    rows, columns = make.integers(0, 512, (20000,), "int64"), make.integers(0, 64, (20000,), "int64")
    cells = in_order(rows, columns)
    values, dense = make.uniform((20000,)), make.uniform((64, 64))
    return make.gradient(lambda v, d: tf.sparse.sparse_dense_matmul(
        tf.SparseTensor(cells, v, [512, 64]), d), [values, dense], wrt=[0, 1])
