"""Cases of sums: segments, gradients of gathers, histograms, sparse products.

Each function yields cases, made by `m`, a making_checks.Maker. Of a case: wrt: which inputs to differentiate by;
second: whether to test second derivatives, too; terms: how many numbers a result sums at most, which bounds its error;
modes: eager, and in graphs that know the shape (STATIC), also the number of dimensions alone (DIMS) or nothing (ALL).
"""

import numpy as np
from making_checks import ALL, DIMS, EAGER, FLOATS, STATIC


def _segment_sum(data, ids, count, start=0.0, combine=np.add):
    """Return what a segment op computes, one row after the other."""
    out = np.full((count,) + data.shape[ids.ndim:], start, dtype=data.dtype)
    rows = data.reshape((ids.size,) + data.shape[ids.ndim:])
    for row, key in zip(rows, ids.reshape(-1).astype(int)):
        if 0 <= key < count:
            out[key] = combine(out[key], row)
    return out


def segments(tf, tf1, m, version):
    dtypes = FLOATS + ("complex64", "complex128")
    for name, patch, low, high in (("segment_sum", "segment", -1, 1), ("segment_prod", "segment", 0.7, 1.2)):
        combine, start = (np.add, 0.0) if name == "segment_sum" else (np.multiply, 1.0)
        differentiable = name == "segment_sum"  # segment_prod has no gradient in TensorFlow
        for dtype in dtypes:
            for rows, inner, count in ((0, (3,), 4), (1, (), 1), (9, (2, 3), 5), (40, (0,), 3), (37, (2,), 30)):
                data, ids = m.real((rows,) + inner, dtype, low, high), np.sort(m.ints(0, count, (rows,)))
                yield m.case("%s %s %d rows of %s" % (name, dtype, rows, inner), patch, _named(tf.math, name),
                             [data, ids], wrt=[0] if differentiable else [], second=differentiable, terms=rows + 2,
                             expected=lambda d, i, c=combine, s=start: _segment_sum(
                                 d, i, int(i[-1]) + 1 if i.size else 0, s, c),
                             modes=ALL if dtype == "float32" and rows in (0, 37) else EAGER)
        ids = np.sort(m.ints(0, 40, (700,), "int64"))
        yield m.case("%s long, int64 ids" % name, patch, _named(tf.math, name),
                     [m.real((700, 2), "float32", low, high), ids], wrt=[0] if differentiable else [], terms=700,
                     modes=DIMS)
    for dtype in ("int32", "int64"):
        yield m.case("segment_sum " + dtype, "segment", lambda d, i: tf.math.segment_sum(d, i),
                     [m.ints(-9, 9, (6, 2), dtype), np.array([0, 0, 1, 3, 3, 3], "int32")])


def _named(module, name):
    """Return a function that looks up the op by its name at each call, so that it finds the patched one, too."""
    return lambda *args: getattr(module, name)(*args)


def unsorted_segments(tf, tf1, m, version):
    def call(name):
        return lambda d, i, n: getattr(tf.math, "unsorted_segment_" + name)(d, i, n)
    patch = "unsorted-segment"
    for dtype in FLOATS + ("complex64", "complex128"):
        for shape, inner, count in (((0,), (3,), 4), ((1,), (), 1), ((9,), (2, 3), 5), ((40,), (0,), 3),
                                    ((4, 5), (2,), 6), ((), (3,), 2), ((50,), (1,), 90)):
            ids = m.ints(-1, count, shape)
            for name, low, high in (("sum", -1, 1), ("prod", 0.7, 1.2)):
                combine, start = (np.add, 0.0) if name == "sum" else (np.multiply, 1.0)
                yield m.case("unsorted_segment_%s %s ids %s, rows %s, %d" % (name, dtype, shape, inner, count), patch,
                             call(name), [m.real(shape + inner, dtype, low, high), ids, np.int32(count)],
                             wrt=[0] if name == "sum" or not dtype.startswith("complex") else [],
                             second=name == "sum", terms=60,
                             expected=lambda d, i, n, c=combine, s=start: _segment_sum(d, i, int(n), s, c),
                             modes=ALL if dtype == "float32" and shape in ((0,), (4, 5)) else EAGER)
    for name in ("mean", "sqrt_n"):
        for dtype in FLOATS:
            data, ids = m.real((40, 3), dtype), m.ints(-1, 7, (40,), "int64")
            yield m.case("unsorted_segment_%s %s" % (name, dtype), patch, call(name), [data, ids, np.int64(7)],
                         wrt=[0], second=True, terms=40)
    data, ids = m.real((900, 2)), m.ints(-3, 5, (900,))
    yield m.case("unsorted_segment_sum long runs", patch, call("sum"), [data, ids, np.int32(5)], wrt=[0], terms=900,
                 modes=ALL, expected=lambda d, i, n: _segment_sum(d, i, int(n)))
    data = m.real((6, 2))
    data[2:4] = [[np.inf, np.nan], [-np.inf, 1]]
    yield m.case("unsorted_segment_sum of infinities", patch, call("sum"),
                 [data, np.array([0, 0, 1, 2, 2, 0], "int32"), np.int32(3)])
    zeros = m.real((8, 2), low=0.5)
    zeros[[1, 4, 5]] = 0
    yield m.case("unsorted_segment_prod of zeros", patch, call("prod"),
                 [zeros, np.array([0, 0, 1, 2, 2, 0, 1, 3], "int32"), np.int32(4)], wrt=[0])
    for dtype in ("int32", "int64", "uint8"):
        yield m.case("unsorted_segment_sum " + dtype, patch, call("sum"),
                     [m.ints(0, 9, (6, 2), dtype), np.array([0, 2, 1, -1, 2, 2], "int32"), np.int32(3)])


def gathers(tf, tf1, m, version):
    for dtype in FLOATS + ("complex64",):
        params, indices = m.real((7, 3), dtype), m.ints(0, 7, (4, 5))
        yield m.case("gather " + dtype, "unsorted-segment", lambda p, i: tf.gather(p, i), [params, indices],
                     wrt=[0], terms=20, modes=DIMS if dtype == "float32" else EAGER)
    yield m.case("gather axis 1", "unsorted-segment", lambda p, i: tf.gather(p, i, axis=1),
                 [m.real((3, 7, 2)), m.ints(0, 7, (9,))], wrt=[0], terms=20, modes=DIMS)
    yield m.case("gather of nothing", "unsorted-segment", lambda p, i: tf.gather(p, i),
                 [m.real((3, 2)), np.zeros((0,), "int32")], wrt=[0])
    yield m.case("embedding_lookup", "unsorted-segment", lambda p, i: tf.nn.embedding_lookup(p, i),
                 [m.real((9, 4)), m.ints(0, 9, (64,))], wrt=[0], terms=64, modes=DIMS)
    yield m.case("IndexedSlices to tensor", "unsorted-segment",
                 lambda v, i: tf.convert_to_tensor(tf.IndexedSlices(v, i, tf.constant([6, 3]))),
                 [m.real((50, 3)), m.ints(0, 6, (50,))], terms=50, modes=STATIC,
                 expected=lambda v, i: _segment_sum(v, i, 6))


def histograms(tf, tf1, m, version):
    for dtype in ("float32", "float64"):
        for shape in ((0,), (1,), (60,), (5, 7)):
            values, weights = m.ints(0, 7, shape), m.real(shape, dtype)
            yield m.case("bincount %s weights %s" % (dtype, shape), "bincount",
                         lambda v, w: tf.math.bincount(v, weights=w, minlength=6, maxlength=7), [values, weights],
                         terms=60, modes=DIMS if dtype == "float32" and shape == (5, 7) else EAGER)
    from tensorflow.python.ops import gen_math_ops
    yield m.case("the Bincount op", "bincount", lambda v, w: gen_math_ops.bincount(v, 6, w),
                 [m.ints(0, 9, (4, 8)), m.real((4, 8), "float64")], terms=32,
                 expected=lambda v, w: np.bincount(v.reshape(-1).astype(int), w.reshape(-1), 9)[:6])
    if hasattr(gen_math_ops, "dense_bincount"):
        for shape in ((40,), (3, 9), (0,), (2, 0), (0, 3)):
            yield m.case("the DenseBincount op %s" % (shape,), "bincount",
                         lambda v, w: gen_math_ops.dense_bincount(v, 6, w),
                         [m.ints(0, 9, shape), m.real(shape)], terms=40)
        yield m.case("bincount along rows", "bincount",
                     lambda v, w: tf.math.bincount(v, weights=w, minlength=6, maxlength=6, axis=-1),
                     [m.ints(0, 6, (3, 9)), m.real((3, 9))], terms=40, modes=STATIC)


def products(tf, tf1, m, version):
    tf_sparse = tf.sparse
    matmul = getattr(tf_sparse, "sparse_dense_matmul", None) or tf.sparse_tensor_dense_matmul

    def call(adjoint_a, adjoint_b):
        return lambda indices, values, shape, b: matmul(
            tf.SparseTensor(indices, values, shape), b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for adjoint_a in (False, True):
            for adjoint_b in (False, True):
                dense = m.ints(0, 2, (4, 6))
                indices = np.argwhere(dense).astype("int64")
                values, b = m.real((len(indices),), dtype), m.real((4, 3) if adjoint_a else (6, 3), dtype)
                b = np.ascontiguousarray(b.T) if adjoint_b else b
                yield m.case("sparse_dense_matmul %s %s %s" % (dtype, adjoint_a, adjoint_b), "sparse-dense-matmul",
                             call(adjoint_a, adjoint_b), [indices, values, np.array([4, 6], "int64"), b],
                             wrt=[1, 3] if not dtype.startswith("complex") or version >= (2, 5) else [],
                             terms=30, second=not dtype.startswith("complex"),
                             modes=DIMS if dtype == "float32" and adjoint_a > adjoint_b else EAGER)
    yield m.case("sparse_dense_matmul of nothing", "sparse-dense-matmul", call(False, False),
                 [np.zeros((0, 2), "int64"), np.zeros((0,), "float32"), np.array([4, 6], "int64"), m.real((6, 3))],
                 wrt=[1, 3])
