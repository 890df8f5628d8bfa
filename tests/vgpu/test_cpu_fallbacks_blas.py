"""CPU fallbacks of cuBLAS against NumPy in extended precision: transposes, leading dimensions, scalars, pointers."""

import ctypes
import itertools

import numpy as np
import pytest
from vendor_library import BLAS, tolerance

OPERATIONS = [lambda a: a, lambda a: a.T, lambda a: a.conj().T]
TYPES = list(BLAS)


def numbers(rng, shape, dtype):
    """Return random numbers between -1 and 1."""
    values = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def column_major(values, leading_dimension):
    """Return a matrix as column-major memory, with NaN (or 7) in the padding of each column."""
    memory = np.full((values.shape[1], leading_dimension), np.nan if values.dtype.kind in "fc" else 7, values.dtype)
    memory[:, : values.shape[0]] = values.T
    return memory


def to_long_double(values):
    """Return values in extended precision, for which NumPy calls no BLAS with machine-dependent last bits."""
    return values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble)


class Problem:
    """Random operands for alpha * op(A) op(B) + beta * C."""

    def __init__(self, seed, dtype, op_a, op_b, beta=None, count=1):
        rng = np.random.default_rng(seed)
        self.dtype, self.ops, self.count = dtype, (op_a, op_b), count
        self.m, self.n, self.k = (int(size) for size in rng.integers(1, 45, 3))
        shape_a, shape_b = (self.m, self.k), (self.k, self.n)
        shapes = [shape_a[::-1] if op_a else shape_a, shape_b[::-1] if op_b else shape_b, (self.m, self.n)]
        self.leading_dimensions = [shape[0] + int(rng.integers(0, 3)) for shape in shapes]
        self.lda, self.ldb, self.ldc = self.leading_dimensions
        self.matrices = [[numbers(rng, shape, dtype) for shape in shapes] for _ in range(count)]
        self.alpha = 1.5
        self.beta = [0.0, 1.0, -0.5][seed % 3] if beta is None else beta
        if self.beta == 0:
            for operands in self.matrices:
                operands[2][:] = np.nan  # C is not read

    def to_memory(self, operand):
        """Return an operand (0: A, 1: B, 2: C) of all products as it lies in memory."""
        return np.stack(
            [column_major(operands[operand], self.leading_dimensions[operand]) for operands in self.matrices]
        )

    def expected(self):
        """Yield the expected product of each batch entry."""
        for a, b, c in self.matrices:
            old_part = 0 if self.beta == 0 else self.beta * to_long_double(c)
            yield (
                self.alpha * (OPERATIONS[self.ops[0]](to_long_double(a)) @ OPERATIONS[self.ops[1]](to_long_double(b)))
                + old_part
            )

    def check(self, results):
        """Assert that results, as they lie in memory, are the expected ones."""
        for result, expected in zip(results, self.expected(), strict=True):
            matrix = result[:, : self.m].T
            assert np.abs(to_long_double(matrix) - expected).max() <= tolerance(self.dtype, 2 * self.k)
            assert np.isnan(result[:, self.m :]).all(), "what lies between the columns is not written"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("op_a", "op_b"), list(itertools.product(range(3), repeat=2)))
def test_gemm(library, dtype, op_a, op_b):
    letter, _ = BLAS[dtype]
    name = "cublasHgemm" if letter == "H" else f"cublas{letter}gemm_v2"
    for seed in range(6):
        p = Problem(seed, dtype, op_a, op_b)
        a, b, c = (library.put(p.to_memory(operand)) for operand in range(3))
        alpha, beta = library.scalar(p.alpha, dtype), library.scalar(p.beta, dtype)
        library.call(name, None, op_a, op_b, p.m, p.n, p.k, alpha, a, p.lda, b, p.ldb, beta, c, p.ldc)
        p.check(library.get(c, (1, p.n, p.ldc), dtype))
    assert name in library.fallback_calls()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 5])
def test_batched_gemm(library, dtype, count):
    letter, _ = BLAS[dtype]
    p = Problem(count, dtype, 1, 0, count=count)
    shape = (count, p.n, p.ldc)
    strides = [ctypes.c_int64(p.to_memory(operand)[0].size) for operand in range(3)]
    a, b, c = (library.put(p.to_memory(operand)) for operand in range(3))
    alpha, beta = library.scalar(p.alpha, dtype), library.scalar(p.beta, dtype)
    head = (None, 1, 0, p.m, p.n, p.k, alpha)
    library.call(
        f"cublas{letter}gemmStridedBatched", *head, a, p.lda, strides[0], b, p.ldb, strides[1], beta, c,
        p.ldc, strides[2], count,
    )  # fmt: skip
    p.check(library.get(c, shape, dtype))
    lists = [[library.put(matrix) for matrix in p.to_memory(operand)] for operand in range(3)]
    a, b, c = (library.pointers(addresses) for addresses in lists)
    library.call(
        f"cublas{letter}gemmBatched", *head, a, p.lda, b, p.ldb, beta, c, p.ldc, count
    )  # fmt: skip
    p.check(np.stack([library.get(address, shape[1:], dtype) for address in lists[2]]))


# The type of alpha, beta and the sums; its number as a cudaDataType (CUDA 10) or a cublasComputeType_t (CUDA 11).
@pytest.mark.parametrize(
    ("dtype", "scalar_type", "compute_type"),
    [
        ("float32", "float32", 0),
        ("float32", "float32", 68),
        ("float32", "float32", 77),
        ("float64", "float64", 70),
        ("float16", "float32", 68),
        ("float16", "float32", 0),
        ("float16", "float16", 64),
        ("complex64", "complex64", 68),
        ("complex128", "complex128", 5),
    ],
)
def test_gemm_ex_with_mixed_types(library, dtype, scalar_type, compute_type):
    _, kind = BLAS[dtype]
    p = Problem(4, dtype, 0, 1, count=3)
    shape = (3, p.n, p.ldc)
    alpha, beta = library.scalar(p.alpha, scalar_type), library.scalar(p.beta, scalar_type)
    head = (None, 0, 1, p.m, p.n, p.k, alpha)
    for algorithm in (-1, 99, 3):
        a, b, c = (library.put(p.to_memory(operand)) for operand in range(3))
        strides = [ctypes.c_int64(p.to_memory(operand)[0].size) for operand in range(3)]
        library.call(
            "cublasGemmStridedBatchedEx", *head, a, kind, p.lda, strides[0], b, kind, p.ldb, strides[1],
            beta, c, kind, p.ldc, strides[2], 3, compute_type, algorithm,
        )  # fmt: skip
        p.check(library.get(c, shape, dtype))
    lists = [[library.put(matrix) for matrix in p.to_memory(operand)] for operand in range(3)]
    a, b, c = (library.pointers(addresses) for addresses in lists)
    library.call(
        "cublasGemmBatchedEx", *head, a, kind, p.lda, b, kind, p.ldb, beta, c, kind, p.ldc, 3, compute_type, -1
    )  # fmt: skip
    p.check(np.stack([library.get(address, shape[1:], dtype) for address in lists[2]]))
    library.call(
        "cublasGemmEx", *head, lists[0][0], kind, p.lda, lists[1][0], kind, p.ldb, library.scalar(0, scalar_type),
        lists[2][0], kind, p.ldc, compute_type, -1,
    )  # fmt: skip
    result = library.get(lists[2][0], shape[1:], dtype)[:, : p.m].T
    assert np.abs(
        to_long_double(result) - p.alpha * (to_long_double(p.matrices[0][0]) @ to_long_double(p.matrices[0][1]).T)
    ).max() < tolerance(dtype, 2 * p.k)


def test_int8_products_are_exact(library):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (20, 20)).astype(np.int8) for _ in range(2))
    c = library.allocate(1600)
    at_a, at_b = library.put(column_major(a, 20)), library.put(column_major(b, 20))
    one, zero = library.scalar(1, np.int32), library.scalar(0, np.int32)
    library.call(
        "cublasGemmEx", None, 0, 0, 20, 20, 20, one, at_a, 3, 20, at_b, 3, 20, zero, c, 10, 20, 72, -1
    )  # fmt: skip
    assert (a.astype(np.int32) @ b.astype(np.int32) == library.get(c, (20, 20), np.int32).T).all()


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_scalars_in_memory_of_the_device(library, dtype):
    letter, _ = BLAS[dtype]
    handle, mode = ctypes.c_void_p(), ctypes.c_int()
    library.call("cublasCreate_v2", ctypes.byref(handle))
    library.call("cublasSetPointerMode_v2", handle, 1)
    library.call("cublasGetPointerMode_v2", handle, ctypes.byref(mode))
    assert mode.value == 1
    x = numbers(np.random.default_rng(1), 9, dtype)
    at_x, two, sum_ = library.put(x), library.put(np.array([2], dtype)), library.put(np.zeros(1, dtype))
    library.call(f"cublas{letter}scal_v2", handle, 9, two, at_x, 1)
    assert (library.get(at_x, 9, dtype) == 2 * x).all()
    name = f"cublas{letter}dotc_v2" if letter == "Z" else f"cublas{letter}dot_v2"
    library.call(name, handle, 9, at_x, 1, at_x, 1, sum_)
    assert abs(library.get(sum_, 1, dtype)[0] - 4 * np.vdot(x, x)) < tolerance(dtype, 40)
    library.call("cublasDestroy_v2", handle)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, -3), (-2, 1)])
def test_vector_operations(library, dtype, incx, incy):
    letter, _ = BLAS[dtype]
    rng = np.random.default_rng(3)
    x, y = numbers(rng, abs(incx) * 16 + 1, dtype), numbers(rng, abs(incy) * 16 + 1, dtype)
    used_x, used_y = (
        vector[:: abs(stride)][:17][:: 1 if stride > 0 else -1] for vector, stride in ((x, incx), (y, incy))
    )
    at_x, at_y = library.put(x), library.put(y)
    total = np.zeros(1, dtype)
    for name, expected in (
        [
            ("dotu", (to_long_double(used_x) * to_long_double(used_y)).sum()),
            ("dotc", np.vdot(to_long_double(used_x), to_long_double(used_y))),
        ]
        if letter in "CZ"
        else [("dot", (to_long_double(used_x) * to_long_double(used_y)).sum())]
    ):
        library.call(f"cublas{letter}{name}_v2", None, 17, at_x, incx, at_y, incy, total)
        assert abs(total[0] - expected) < tolerance(dtype, 34)
    library.call(f"cublas{letter}axpy_v2", None, 17, library.scalar(-0.5, dtype), at_x, incx, at_y, incy)
    expected = y.copy()
    expected[:: abs(incy)][:17][:: 1 if incy > 0 else -1] -= used_x * to_scalar(0.5, dtype)
    assert np.abs(library.get(at_y, y.shape, dtype) - expected).max() < tolerance(dtype)
    library.call(f"cublas{letter}copy_v2", None, 17, at_x, incx, at_y, incy)
    expected[:: abs(incy)][:17][:: 1 if incy > 0 else -1] = used_x
    assert (library.get(at_y, y.shape, dtype) == expected).all()


def to_scalar(value, dtype):
    return np.array(value, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("op", range(3))
@pytest.mark.parametrize("beta", [0, -0.5])
def test_gemv(library, dtype, op, beta):
    rng = np.random.default_rng(op)
    a = numbers(rng, (13, 7), dtype)
    used = OPERATIONS[op](to_long_double(a))
    x, y = numbers(rng, 2 * used.shape[1] - 1, dtype), numbers(rng, used.shape[0], dtype)
    if beta == 0:
        y[:] = np.nan
    at_a, at_x, at_y = library.put(column_major(a, 14)), library.put(x), library.put(y)
    alpha_pointer, beta_pointer = library.scalar(2, dtype), library.scalar(beta, dtype)
    letter, _ = BLAS[dtype]
    library.call(f"cublas{letter}gemv_v2", None, op, 13, 7, alpha_pointer, at_a, 14, at_x, 2, beta_pointer, at_y, 1)
    expected = 2 * (used @ to_long_double(x)[::2]) + (beta * to_long_double(y) if beta else 0)
    assert np.abs(library.get(at_y, y.shape, dtype) - expected).max() < tolerance(dtype, 60)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("right", "upper", "op", "unit"), list(itertools.product((0, 1), (0, 1), range(3), (0, 1))))
def test_trsm(library, dtype, right, upper, op, unit):
    rng = np.random.default_rng(5)
    m, n = 6, 9
    order = n if right else m
    a = numbers(rng, (order, order), dtype) * to_scalar(0.2, dtype) + 2 * np.eye(order, dtype=dtype)
    b = numbers(rng, (m, n), dtype)
    used = to_long_double(np.triu(a) if upper else np.tril(a))
    if unit:
        np.fill_diagonal(used, 1)
    a[np.tril_indices(order, -1) if upper else np.triu_indices(order, 1)] = np.nan
    used = OPERATIONS[op](used)
    letter, _ = BLAS[dtype]
    at_a, at_b = library.put(column_major(a, order + 1)), library.put(column_major(b, m))
    batch = [library.put(column_major(b, m)) for _ in range(3)]
    alpha = library.scalar(0.5, dtype)
    head = (None, right, upper, op, unit, m, n, alpha)
    library.call(f"cublas{letter}trsm_v2", *head, at_a, order + 1, at_b, m)
    library.call(
        f"cublas{letter}trsmBatched", *head, library.pointers([at_a] * 3), order + 1, library.pointers(batch), m, 3
    )  # fmt: skip
    for one in (at_b, *batch):
        x = to_long_double(library.get(one, (n, m), dtype).T)
        left = x @ used if right else used @ x
        assert np.abs(left - 0.5 * to_long_double(b)).max() < tolerance(dtype, 200)


def test_invalid_sizes_return_the_errors_of_cublas(library):
    one, a = library.scalar(1, "float32"), library.put(np.zeros(100, np.float32))
    for m, n, k, lda in [(-1, 2, 2, 2), (4, 2, 2, 3)]:
        assert library.status("cublasSgemm_v2", None, 0, 0, m, n, k, one, a, lda, a, 2, one, a, 4) == 7
    assert library.status("cublasSgemm_v2", None, 3, 0, 2, 2, 2, one, a, 2, a, 2, one, a, 2) == 7
    assert library.status("cublasSgemm_v2", None, 0, 0, 0, 2, 2, one, None, 1, a, 2, one, None, 1) == 0
