"""CPU fallbacks of cublasLt against NumPy in extended precision: layouts, D beside C, batches, biases, activations."""

import ctypes

import numpy as np
import pytest
from test_cpu_fallbacks_blas import Problem, numbers, to_long_double
from vendor_library import BLAS, tolerance

COMPUTE = {"float16": 68, "float32": 68, "float64": 70, "complex64": 68, "complex128": 70}  # cublasComputeType_t
SCALE = {"float16": 0, "float32": 0, "float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType_t
# cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtEpilogue_t, cublasStatus_t
POINTER_MODE, TRANSPOSE_A, TRANSPOSE_B, EPILOGUE, BIAS, BIAS_STRIDE, A_SCALE, BIAS_TYPE = 2, 3, 4, 7, 8, 10, 17, 26
ORDER, BATCH_COUNT, BATCH_STRIDE = 1, 5, 6
DEFAULT, RELU, WITH_BIAS, GELU, GELU_AUX = 1, 2, 4, 32, 160
NOT_SUPPORTED, INVALID_VALUE, ALLOCATION_FAILED = 15, 7, 3
SIZE = {"i": ctypes.c_int, "q": ctypes.c_int64, "p": ctypes.c_void_p}


class Product:
    """The product of a Problem as a call of cublasLtMatmul, with D in other memory than C."""

    def __init__(self, library, problem, dtype):
        self.library, self.problem, self.dtype, self.stream = library, problem, dtype, None
        self.description = self.create("MatmulDesc", ctypes.c_int(COMPUTE[dtype]), ctypes.c_int(SCALE[dtype]))
        p = problem
        self.set("MatmulDesc", self.description, TRANSPOSE_A, "i", p.ops[0])
        self.set("MatmulDesc", self.description, TRANSPOSE_B, "i", p.ops[1])
        self.arrays = [p.to_memory(operand) for operand in range(3)]
        self.memory = [library.put(values) for values in self.arrays]
        self.result = library.put(np.full_like(self.arrays[2], np.nan))
        shapes = [matrix.shape for matrix in p.matrices[0]]
        self.layouts = [self.layout(*pair) for pair in zip(shapes, p.leading_dimensions, strict=True)]
        self.layouts.append(self.layout(shapes[2], p.ldc))
        scalars = "float32" if dtype == "float16" else dtype
        self.scalars = library.scalar(p.alpha, scalars), library.scalar(p.beta, scalars)

    def create(self, kind, *arguments):
        """Create a descriptor of cublasLt of that kind."""
        descriptor = ctypes.c_void_p()
        self.library.call(f"cublasLt{kind}Create", ctypes.byref(descriptor), *arguments)
        return descriptor

    def set(self, kind, descriptor, attribute, type_code, value):
        """Set an attribute; type_code: i int, q int64, p pointer."""
        element = SIZE[type_code](value)
        name = f"cublasLt{kind}SetAttribute"
        self.library.call(name, descriptor, attribute, ctypes.byref(element), ctypes.c_size_t(ctypes.sizeof(element)))

    def layout(self, shape, leading_dimension):
        """Create the layout of a matrix."""
        rows, columns = map(ctypes.c_uint64, shape)
        layout = self.create(
            "MatrixLayout", ctypes.c_int(BLAS[self.dtype][1]), rows, columns, ctypes.c_int64(leading_dimension)
        )
        if self.problem.count > 1:
            self.set("MatrixLayout", layout, BATCH_COUNT, "i", self.problem.count)
            self.set("MatrixLayout", layout, BATCH_STRIDE, "q", shape[1] * leading_dimension)
        return layout

    def bias(self, values, epilogue, stride=0):
        """Set a bias and the epilogue that adds it."""
        self.set("MatmulDesc", self.description, EPILOGUE, "i", epilogue)
        self.set("MatmulDesc", self.description, BIAS, "p", self.library.put(values).value)
        self.set("MatmulDesc", self.description, BIAS_STRIDE, "q", stride)

    def status(self):
        """Call cublasLtMatmul; return its status."""
        (a, b, c), (alpha, beta) = self.memory, self.scalars
        la, lb, lc, ld = self.layouts
        no_size = ctypes.c_size_t(0)
        return self.library.status("cublasLtMatmul", None, self.description, alpha, a, la, b, lb, beta, c, lc,
                                   self.result, ld, None, None, no_size, self.stream)  # fmt: skip

    def heuristic(self):
        """Return the status of the search for an algorithm, and the number of algorithms."""
        result, count = (ctypes.c_uint8 * 96)(), ctypes.c_int(-1)
        search = ["cublasLtMatmulAlgoGetHeuristic", None, self.description, *self.layouts, None, 1, result]
        status = self.library.status(*search, ctypes.byref(count))
        return status, max(count.value, 0)

    def output(self):
        """Return D."""
        return self.library.get(self.result, self.arrays[2].shape, self.dtype)


@pytest.mark.parametrize("dtype", BLAS)
@pytest.mark.parametrize("count", [1, 3])
def test_matmul_with_d_beside_c(library, dtype, count):
    for seed in range(6):
        problem = Problem(seed, dtype, seed % 3, seed // 2 % 3, count=count)
        product = Product(library, problem, dtype)
        assert product.status() == 0
        problem.check(product.output())
        c_after = library.get(product.memory[2], product.arrays[2].shape, dtype)
        assert c_after.tobytes() == product.arrays[2].tobytes(), "C is read alone"
    assert "cublasLtMatmul" in library.fallback_calls()


def gelu(values):
    return values * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3))) / 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("epilogue", "f"),
    [(WITH_BIAS, lambda x: x), (WITH_BIAS | RELU, lambda x: np.maximum(x, 0)), (WITH_BIAS | GELU, gelu)],
)
def test_matmul_with_bias_and_activation(library, dtype, epilogue, f):
    """Each product of a batch has a bias for each row of D."""
    for seed in range(3):
        problem = Problem(seed, dtype, 1, 0, count=2)
        biases = numbers(np.random.default_rng(seed), (2, problem.m), dtype)
        product = Product(library, problem, dtype)
        product.bias(biases, epilogue, stride=problem.m)
        assert product.status() == 0
        for result, exact, bias in zip(product.output(), problem.expected(), biases, strict=True):
            expected = f(exact + to_long_double(bias)[:, None])
            assert np.abs(to_long_double(result[:, : problem.m].T) - expected).max() <= tolerance(dtype, 2 * problem.k)


def test_one_algorithm_is_found(library):
    """cublasLtMatmulHeuristicResult_t has an algorithm of 64 bytes, a workspace size and a status."""
    product = Product(library, Problem(0, "float32", 0, 0), "float32")
    result, count = (ctypes.c_uint8 * 96)(*[255] * 96), ctypes.c_int()
    search = ["cublasLtMatmulAlgoGetHeuristic", None, product.description, *product.layouts, None]
    assert library.status(*search, 1, result, ctypes.byref(count)) == 0
    assert (count.value, bytes(result)) == (1, bytes(96))
    assert library.status(*search, 0, result, ctypes.byref(count)) == INVALID_VALUE


def change_layout(product, attribute, type_code, value):
    product.set("MatrixLayout", product.layouts[0], attribute, type_code, value)


def change_product(product, attribute, type_code, value):
    product.set("MatmulDesc", product.description, attribute, type_code, value)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda p: change_layout(p, ORDER, "i", 1), NOT_SUPPORTED),
        (lambda p: change_product(p, EPILOGUE, "i", GELU_AUX), NOT_SUPPORTED),
        (lambda p: change_product(p, POINTER_MODE, "i", 2), NOT_SUPPORTED),
        (lambda p: change_product(p, A_SCALE, "p", 4096), NOT_SUPPORTED),
        (lambda p: change_product(p, A_SCALE, "p", None), 0),
        (lambda p: change_product(p, TRANSPOSE_A, "i", 7), INVALID_VALUE),
        (lambda p: change_layout(p, BATCH_COUNT, "i", 2), INVALID_VALUE),
        (lambda p: p.layouts.__setitem__(0, p.layouts[2]), INVALID_VALUE),
        (lambda p: p.layouts.__setitem__(0, None), INVALID_VALUE),
    ],
)
def test_unsupported_and_invalid_products_are_refused(library, change, status):
    problem = Problem(4, "float32", 0, 0)
    assert problem.k != problem.n
    product = Product(library, problem, "float32")
    change(product)
    assert product.status() == status
    assert product.heuristic() == (status, int(status == 0)), "what is refused has no algorithm"
    assert np.isnan(product.output()).all() == (status != 0)


def test_descriptors_in_memory_of_the_program(library):
    """Descriptors of the sizes of the header's opaque types are initialized, and smaller ones are refused."""
    description, layout = (ctypes.c_uint64 * 32)(), (ctypes.c_uint64 * 8)()
    function = "cublasLtMatmulDescInit_internal"
    assert library.status(function, description, ctypes.c_size_t(8), 68, 0) == ALLOCATION_FAILED
    assert library.status(function, description, ctypes.c_size_t(256), 68, 0) == 0
    problem = Problem(0, "float32", 0, 0)
    product = Product(library, problem, "float32")
    product.description = description
    rows, columns = map(ctypes.c_uint64, problem.matrices[0][0].shape)
    function, lda = "cublasLtMatrixLayoutInit_internal", ctypes.c_int64(problem.lda)
    assert library.status(function, layout, ctypes.c_size_t(64), 0, rows, columns, lda) == 0
    product.layouts[0] = layout
    assert product.status() == 0
    problem.check(product.output())


class TestCapture:
    """Captured calls are computed by the graph, anew at each launch, with the scalars of the call."""

    @pytest.fixture
    def stream(self, library):
        return library.stream(1)

    def change(self, library, address, values):
        size = ctypes.c_size_t(values.nbytes)
        assert library.cuda.cuMemcpyHtoD_v2(address, library.to_ctypes(np.ascontiguousarray(values)), size) == 0

    def test_of_the_stream_that_is_passed(self, library, stream):
        problem = Problem(2, "float32", 0, 1)
        product = Product(library, problem, "float32")
        product.stream = stream
        graph = library.capture(stream, lambda: product.status() == 0 or pytest.fail())
        assert np.isnan(product.output()).all()
        library.launch_graph(graph, stream)
        problem.check(product.output())

    def test_of_a_handles_stream(self, library, stream):
        handle = ctypes.c_void_p()
        library.call("cublasCreate_v2", ctypes.byref(handle))
        library.call("cublasSetStream_v2", handle, stream)
        queried = ctypes.c_void_p()
        library.call("cublasGetStream_v2", handle, ctypes.byref(queried))
        assert queried.value == stream.value
        x, y = (library.put(np.array(values, np.float32)) for values in ([1, 2, 3], [10, 20, 30]))
        factor = np.array([2], np.float32)

        def call():
            library.call("cublasSaxpy_v2", handle, 3, factor.ctypes.data_as(ctypes.c_void_p), x, 1, y, 1)
            factor[0] = 100  # the captured call has a copy

        graph = library.capture(stream, call)
        assert library.get(y, 3, np.float32).tolist() == [10, 20, 30]
        library.launch_graph(graph, stream)
        assert library.get(y, 3, np.float32).tolist() == [12, 24, 36]
        self.change(library, x, np.array([0, 0, 1], np.float32))
        library.launch_graph(graph, stream)
        assert library.get(y, 3, np.float32).tolist() == [12, 24, 38]

    def test_another_stream_is_not_captured(self, library, stream):
        x = library.put(np.array([1, 2, 3], np.float32))
        assert library.cuda.cuStreamBeginCapture_v2(stream, 0) == 0
        handle = ctypes.c_void_p()
        library.call("cublasCreate_v2", ctypes.byref(handle))
        library.call("cublasSetStream_v2", handle, library.stream(1))
        library.call("cublasSscal_v2", handle, 3, library.scalar(3, "float32"), x, 1)
        graph = ctypes.c_void_p()
        assert library.cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
        assert library.get(x, 3, np.float32).tolist() == [3, 6, 9]

    def test_after_a_host_function(self, library, stream):
        """The graph keeps the order, as the host function may write what the product reads."""
        x, calls = library.put(np.array([1, 2, 3], np.float32)), []
        handle = ctypes.c_void_p()
        library.call("cublasCreate_v2", ctypes.byref(handle))
        library.call("cublasSetStream_v2", handle, stream)
        pinned = ctypes.c_void_p()
        assert library.cuda.cuMemHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(12), 0) == 0
        floats = (ctypes.c_float * 3).from_address(pinned.value)

        def fill(_):
            floats[:] = [5, 6, 7]
            calls.append(1)

        f, size = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(fill), ctypes.c_size_t(12)

        def call():
            assert library.cuda.cuLaunchHostFunc(stream, f, None) == 0
            assert library.cuda.cuMemcpyHtoDAsync_v2(x, pinned, size, stream) == 0
            library.call("cublasSscal_v2", handle, 3, library.scalar(2, "float32"), x, 1)

        graph = library.capture(stream, call)
        assert calls == []
        library.launch_graph(graph, stream)
        assert (calls, library.get(x, 3, np.float32).tolist()) == ([1], [10, 12, 14])
