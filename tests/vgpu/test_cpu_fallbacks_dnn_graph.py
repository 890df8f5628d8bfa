"""cuDNN's graph interface, computed by CPU fallbacks: convolutions and pointwise operations against NumPy."""

import ctypes

import numpy as np
import pytest
from device_tensors import TYPES, assert_close, numbers
from test_cpu_fallbacks_dnn import CONVOLUTIONS, Convolution
from vendor_library import DNN, Library

# cudnn_graph.h: cudnnBackendDescriptorType_t
POINTWISE, CONVOLUTION, ENGINE, CONFIG, HEURISTICS, PLAN = 0, 1, 2, 3, 4, 5
FORWARD, FILTER, DATA, POINTWISE_OPERATION, GRAPH, PACK, TENSOR, MATMUL = 10, 11, 12, 13, 15, 16, 17, 19
# cudnnBackendAttributeType_t, and the NumPy type of its elements
HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, POINTER, MODE, HEURISTIC_MODE, POINTWISE_MODE, DESCRIPTOR = (
    *(0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 15),
)
ELEMENTS = {
    HANDLE: np.uint64, DATA_TYPE: np.int32, BOOLEAN: np.bool_, INT64: np.int64, FLOAT: np.float32, DOUBLE: np.float64,
    POINTER: np.uint64, MODE: np.int32, HEURISTIC_MODE: np.int32, POINTWISE_MODE: np.int32, DESCRIPTOR: np.uint64,
}  # fmt: skip
BAD_PARAMETER, NOT_INITIALIZED, NOT_SUPPORTED = 3, 1, 9
# Names of the attributes of each operation: alpha, beta, the convolution, w, x, y (cudnnBackendAttributeName_t).
NAMES = {FORWARD: range(700, 706), DATA: (706, 707, 708, 709, 710, 711), FILTER: (712, 713, 714, 715, 716, 717)}
X, W, Y = 1, 2, 3  # unique identifiers of tensors


class Graph:
    """Descriptors of the backend interface, which are destroyed by `destroy`.

    Their attributes are set by the numbers of cudnnBackendAttributeName_t.
    """

    def __init__(self, library):
        self.library, self.handles = library, []

    def create(self, kind):
        handle = ctypes.c_void_p()
        self.library.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(handle))
        self.handles.append(handle)
        return handle

    def set(self, handle, name, kind, *values):
        elements = np.array([value.value if kind == DESCRIPTOR else value for value in values], ELEMENTS[kind])
        count = ctypes.c_int64(len(values))
        return self.library.status("cudnnBackendSetAttribute", handle, name, kind, count, elements)

    def get(self, handle, name, kind, values, requested=None):
        """Read an attribute into `values`; return the status and the number of its elements."""
        count = ctypes.c_int64(-1)
        requested_count = ctypes.c_int64(len(values) if requested is None else requested)
        status = self.library.status(
            "cudnnBackendGetAttribute", handle, name, kind, requested_count, ctypes.byref(count), values
        )
        return status, count.value

    def finalize(self, handle):
        return self.library.status("cudnnBackendFinalize", handle)

    def descriptor(self, kind, attributes):
        handle = self.create(kind)
        for name, (element, *values) in attributes.items():
            assert self.set(handle, name, element, *values) == 0, name
        assert self.finalize(handle) == 0
        return handle

    def tensor(self, identity, shape, dtype, channels_last=False, **options):
        order, strides, stride = (
            [0, *range(2, len(shape)), 1] if channels_last else list(range(len(shape))),
            [0] * len(shape),
            1,
        )
        for axis in reversed(order):
            strides[axis], stride = stride, stride * shape[axis]
        attributes = {
            900: (INT64, 4), 901: (DATA_TYPE, DNN[dtype]), 902: (INT64, *shape), 903: (INT64, *strides),
            906: (INT64, identity), 907: (BOOLEAN, options.get("virtual", False)),
            908: (BOOLEAN, options.get("by_value", False)),
        }  # fmt: skip
        return self.descriptor(TENSOR, attributes)

    def convolution(self, c):
        return self.descriptor(
            CONVOLUTION,
            {
                100: (DATA_TYPE, 0), 101: (MODE, 0 if c.flipped else 1), 106: (INT64, len(c.pads)),
                102: (INT64, *c.dilations), 103: (INT64, *c.strides), 104: (INT64, *c.pads), 105: (INT64, *c.pads),
            },
        )  # fmt: skip

    def operation(self, kind, c, tensors, alpha=1, beta=0, scale=DOUBLE):
        alpha_name, beta_name, convolution_name, w_name, x_name, y_name = NAMES[kind]
        x, w, y = tensors
        handle = self.create(kind)
        settings = [
            (alpha_name, scale, alpha),
            (beta_name, scale, beta),
            (convolution_name, DESCRIPTOR, self.convolution(c)),
        ]
        for name, element, value in [
            *settings,
            *((n, DESCRIPTOR, t) for n, t in ((w_name, w), (x_name, x), (y_name, y))),
        ]:
            assert self.set(handle, name, element, value) == 0
        return handle

    def plan(self, *operations):
        """Return a plan, made as by cuDNN's front end: from a graph and the first engine of the heuristics."""
        for operation in operations:
            assert self.finalize(operation) == 0
        graph = self.descriptor(GRAPH, {800: (HANDLE, 0), 801: (DESCRIPTOR, *operations)})
        heuristics = self.descriptor(HEURISTICS, {201: (DESCRIPTOR, graph), 200: (HEURISTIC_MODE, 0)})
        nothing = np.zeros(0, np.uint64)
        assert self.get(heuristics, 202, DESCRIPTOR, nothing) == (0, 1)
        config, engine = self.create(CONFIG), self.create(ENGINE)
        assert self.get(heuristics, 202, DESCRIPTOR, np.array([config.value], np.uint64)) == (0, 1)
        assert self.get(config, 300, DESCRIPTOR, np.array([engine.value], np.uint64)) == (0, 1)
        for name, kind in ((1303, 11), (1305, 19), (1302, DESCRIPTOR)):  # notes and knobs
            assert self.get(engine, name, kind, nothing) == (0, 0)
        plan = self.descriptor(PLAN, {400: (HANDLE, 0), 401: (DESCRIPTOR, config)})
        size = np.array([7], np.int64)
        assert (self.get(plan, 402, INT64, size), size[0]) == ((0, 1), 0)
        return plan

    def pack(self, memory):
        pointers = [address.value for address in memory.values()]
        return self.descriptor(PACK, {1000: (INT64, *memory), 1001: (POINTER, *pointers), 1003: (POINTER, 0)})

    def execute(self, plan, memory, handle=None):
        return self.library.status("cudnnBackendExecute", handle, plan, self.pack(memory))

    def destroy(self):
        for handle in self.handles:
            self.library.call("cudnnBackendDestroyDescriptor", handle)
        self.handles = []


@pytest.fixture
def graph(library):
    graph = Graph(library)
    yield graph
    graph.destroy()


def convolution(graph, c, dtype, kind, channels_last=False, **scales):
    shapes = zip((X, W, Y), (c.x_shape, c.w_shape, c.y_shape), strict=True)
    return graph.operation(
        kind, c, [graph.tensor(name, shape, dtype, channels_last) for name, shape in shapes], **scales
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_a_convolution_and_its_gradients(library, graph, dtype, last, kind):
    c = Convolution(**CONVOLUTIONS[kind])
    x, w, y = numbers(c.x_shape, dtype), numbers(c.w_shape, dtype, 1), numbers(c.y_shape, dtype, 2)
    wide_x, wide_w, wide_y = (values.astype(np.float64) for values in (x, w, y))
    half = dtype == "float16"  # only the last step rounds to half precision
    expectations = [
        (FORWARD, Y, y, c.forward(wide_x, wide_w), 16 if half else 2 * c.terms),
        (DATA, X, x, c.backward_data(wide_w, wide_y), 16 if half else 2 * c.terms),
        (FILTER, W, w, c.backward_filter(wide_x, wide_y), 60 if half else 4 * y[0, 0].size),
    ]
    for operation, result, old_values, expected, terms in expectations:
        memory = {name: library.put_tensor(values, last) for name, values in zip((X, W, Y), (x, w, y), strict=True)}
        plan = graph.plan(convolution(graph, c, dtype, operation, last, alpha=2, beta=0.5))
        assert graph.execute(plan, memory) == 0
        computed = library.get_tensor(memory[result], old_values.shape, dtype, last).astype(np.float64)
        assert_close(computed, 2 * expected + 0.5 * old_values.astype(np.float64), dtype, terms)


def test_a_report_names_the_kind_of_operation(library, graph):
    c = Convolution()
    for kind, name in ((FORWARD, "FORWARD"), (DATA, "BACKWARD_DATA"), (FILTER, "BACKWARD_FILTER")):
        memory = {
            name: library.put(np.zeros(s, np.float32))
            for name, s in zip((X, W, Y), (c.x_shape, c.w_shape, c.y_shape), strict=True)
        }
        assert graph.execute(graph.plan(convolution(graph, c, "float32", kind)), memory) == 0
        assert f"cudnnBackendExecute(CONVOLUTION_{name})" in library.fallback_calls()


@pytest.mark.parametrize(("kind", "name"), [(FORWARD, "FORWARD"), (DATA, "BACKWARD_DATA"), (FILTER, "BACKWARD_FILTER")])
def test_without_fallbacks_the_operation_is_refused_by_name(tmp_path, capfd, kind, name):
    graph = Graph(Library(tmp_path, fallbacks=""))
    operation = convolution(graph, Convolution(), "float32", kind)
    assert graph.finalize(operation) == NOT_SUPPORTED
    assert f"cudnnBackendFinalize(CONVOLUTION_{name})" in capfd.readouterr().err
    graph.destroy()


def test_scales_are_floats_or_doubles(library, graph):
    c = Convolution(window=1, pads=0)
    x, w = numbers(c.x_shape, "float32"), numbers(c.w_shape, "float32", 1)
    for scale in (FLOAT, DOUBLE):
        memory = {X: library.put(x), W: library.put(w), Y: library.put(np.zeros(c.y_shape, np.float32))}
        operation = convolution(graph, c, "float32", FORWARD, alpha=4, scale=scale)
        assert graph.execute(graph.plan(operation), memory) == 0
        assert_close(library.get(memory[Y], c.y_shape, np.float32), 4 * c.forward(x, w), "float32", 4 * c.terms)


def test_destroyed_descriptors_live_on_in_the_plan(library, graph):
    """cuDNN's front end keeps only the plan."""
    c = Convolution()
    x, w = numbers(c.x_shape, "float32"), numbers(c.w_shape, "float32", 1)
    plan = graph.plan(convolution(graph, c, "float32", FORWARD))
    graph.handles.remove(plan)
    graph.destroy()
    memory = {X: library.put(x), W: library.put(w), Y: library.put(np.zeros(c.y_shape, np.float32))}
    assert graph.execute(plan, memory) == 0
    assert_close(library.get(memory[Y], c.y_shape, np.float32), c.forward(x, w), "float32", 2 * c.terms)


FUNCTIONS = {  # cudnnPointwiseMode_t: operands, what NumPy does
    0: (2, lambda x, b: x + b), 1: (2, lambda x, b: x * b), 2: (2, np.minimum), 3: (2, np.maximum),
    6: (2, lambda x, b: x / b), 9: (2, lambda x, b: x - b), 4: (1, np.sqrt), 10: (1, np.abs), 13: (1, np.exp),
    15: (1, np.log), 16: (1, np.negative), 21: (1, lambda x: x), 100: (1, lambda x: np.maximum(x, 0)),
    101: (1, np.tanh), 102: (1, lambda x: 1 / (1 + np.exp(-x))),
    103: (1, lambda x: np.where(x > 0, x, np.expm1(x))),
}  # fmt: skip


@pytest.mark.parametrize("mode", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pointwise_operation(library, graph, dtype, mode):
    operands, function = FUNCTIONS[mode]
    shape, small = (2, 3, 4, 5), (1, 3, 1, 1)
    x, b = numbers(shape, dtype), numbers(small, dtype, 1)
    if mode in (4, 15):  # these modes take positive numbers
        x = np.abs(x) + np.asarray(0.1, dtype)
    attributes = {
        750: (DESCRIPTOR, graph.descriptor(POINTWISE, {0: (POINTWISE_MODE, mode), 1: (DATA_TYPE, DNN[dtype])})),
        751: (DESCRIPTOR, graph.tensor(1, shape, dtype)), 753: (DESCRIPTOR, graph.tensor(3, shape, dtype)),
        754: (DOUBLE, 0.5), 755: (DOUBLE, 2.0),
    }  # fmt: skip
    if operands == 2:
        attributes[752] = DESCRIPTOR, graph.tensor(2, small, dtype)
    memory = {1: library.put(x), 2: library.put(b), 3: library.put(np.zeros(shape, dtype))}
    assert graph.execute(graph.plan(graph.descriptor(POINTWISE_OPERATION, attributes)), memory) == 0
    wide = [0.5 * x.astype(np.float64), 2 * b.astype(np.float64)]
    assert_close(library.get(memory[3], shape, dtype).astype(np.float64), function(*wide[:operands]), dtype, 200)


def pointwise(graph, mode, x, y, b=None, clips=(), b_scale=1):
    attributes = {0: (POINTWISE_MODE, mode), 1: (DATA_TYPE, 0), **{name: (DOUBLE, value) for name, value in clips}}
    operation_attributes = {
        750: (DESCRIPTOR, graph.descriptor(POINTWISE, attributes)),
        751: (DESCRIPTOR, x),
        753: (DESCRIPTOR, y),
    }
    operation_attributes[755] = DOUBLE, b_scale
    if b is not None:
        operation_attributes[752] = DESCRIPTOR, b
    handle = graph.create(POINTWISE_OPERATION)
    for name, (element, value) in operation_attributes.items():
        assert graph.set(handle, name, element, value) == 0
    return handle


def test_a_fused_convolution_keeps_what_lies_between_out_of_memory(library, graph):
    """Convolution, bias and rectifier pass two virtual tensors."""
    c = Convolution()
    x, w, bias = numbers(c.x_shape, "float32"), numbers(c.w_shape, "float32", 1), numbers((1, 3, 1, 1), "float32", 2)
    virtual = [graph.tensor(name, c.y_shape, "float32", virtual=True) for name in (10, 11)]
    inputs = [graph.tensor(X, c.x_shape, "float32"), graph.tensor(W, c.w_shape, "float32")]
    biases, result = graph.tensor(4, (1, 3, 1, 1), "float32"), graph.tensor(Y, c.y_shape, "float32")
    operations = [
        graph.operation(FORWARD, c, [*inputs, virtual[0]]),
        pointwise(graph, 0, virtual[0], virtual[1], biases),
        pointwise(graph, 100, virtual[1], result),
    ]
    plan = graph.plan(*operations)
    memory = {
        X: library.put(x),
        W: library.put(w),
        4: library.put(bias),
        Y: library.put(np.zeros(c.y_shape, np.float32)),
    }
    assert graph.execute(plan, memory) == 0
    expected = np.maximum(c.forward(x, w) + bias, 0)
    assert_close(library.get(memory[Y], c.y_shape, np.float32), expected, "float32", 2 * c.terms)
    assert 0 < (expected == 0).sum() < expected.size


def test_an_operand_with_zero_scale_is_not_read(library, graph):
    """TensorFlow's fused convolutions have a tensor to be added, without memory if its scale is 0."""
    x, b, y = (graph.tensor(name, (1, 2, 3, 4), "float32") for name in (1, 2, 3))
    values = numbers((1, 2, 3, 4), "float32")
    memory = {1: library.put(values), 2: ctypes.c_uint64(0), 3: library.put(np.zeros_like(values))}
    assert graph.execute(graph.plan(pointwise(graph, 0, x, y, b, b_scale=0)), memory) == 0
    assert (library.get(memory[3], values.shape, np.float32) == values).all()


@pytest.mark.parametrize(
    ("clips", "expected"),
    [
        # attributes of a pointwise descriptor: 3 the lower clip, 4 the upper clip, 5 the slope below the lower clip
        ({3: -0.5}, lambda x: np.maximum(x, -0.5)), ({4: 0.5}, lambda x: np.clip(x, 0, 0.5)),
        ({5: 0.25}, lambda x: np.where(x < 0, 0.25 * x, x)),
    ],
)  # fmt: skip
def test_relu_with_clips(library, graph, clips, expected):
    x, y = (graph.tensor(name, (1, 2, 3, 4), "float32") for name in (1, 3))
    values = numbers((1, 2, 3, 4), "float32")
    memory = {1: library.put(values), 3: library.put(np.zeros_like(values))}
    assert graph.execute(graph.plan(pointwise(graph, 100, x, y, clips=clips.items())), memory) == 0
    assert (library.get(memory[3], values.shape, np.float32) == expected(values)).all()


class TestErrors:
    def test_a_finalized_descriptor_cannot_be_changed(self, graph):
        tensor = graph.tensor(1, (1, 2, 3, 4), "float32")
        assert graph.set(tensor, 906, INT64, 2) == NOT_INITIALIZED
        number = np.array([0], np.int64)
        assert (graph.get(tensor, 906, INT64, number), number[0]) == ((0, 1), 1)

    def test_a_descriptor_that_is_not_finalized_cannot_be_read(self, graph):
        assert graph.get(graph.create(TENSOR), 906, INT64, np.array([0], np.int64)) == (NOT_INITIALIZED, -1)

    def test_a_descriptor_that_is_not_finalized_is_no_attribute(self, graph):
        assert graph.set(graph.create(GRAPH), 801, DESCRIPTOR, graph.create(FORWARD)) == BAD_PARAMETER

    def test_an_attribute_of_another_type(self, graph):
        tensor = graph.tensor(1, (1, 2, 3, 4), "float32")
        assert graph.get(tensor, 902, DOUBLE, np.zeros(4))[0] == BAD_PARAMETER
        assert (
            graph.library.status(
                "cudnnBackendSetAttribute", graph.create(TENSOR), 902, 99, ctypes.c_int64(1), np.zeros(1)
            )
            == BAD_PARAMETER
        )

    def test_fewer_elements_are_asked_for_than_there_are(self, graph):
        tensor, values = graph.tensor(1, (1, 2, 3, 4), "float32"), np.full(4, -1, np.int64)
        assert graph.get(tensor, 902, INT64, values, requested=2) == (0, 4)
        assert values.tolist() == [1, 2, -1, -1]

    def test_null_pointers_are_refused(self, graph):
        for name, arguments in (
            ("cudnnBackendCreateDescriptor", (17, None)), ("cudnnBackendFinalize", (None,)),
            ("cudnnBackendExecute", (None, None, None)),
            ("cudnnBackendSetAttribute", (graph.create(TENSOR), 902, INT64, ctypes.c_int64(1), None)),
            ("cudnnBackendSetAttribute", (graph.create(TENSOR), 902, INT64, ctypes.c_int64(-1), np.zeros(1))),
        ):  # fmt: skip
            assert graph.library.status(name, *arguments) == BAD_PARAMETER, name

    @pytest.mark.parametrize(
        "change", [{"y_shape": (2, 3, 9, 8)}, {"w_shape": (3, 3, 3, 3)}, {"y_shape": (1, 3, 9, 9)}, {"pads": [1]}]
    )
    def test_shapes_that_do_not_fit(self, graph, change):
        c = Convolution()
        vars(c).update(change)
        assert graph.finalize(convolution(graph, c, "float32", FORWARD)) == BAD_PARAMETER

    def test_a_missing_attribute(self, graph):
        assert graph.finalize(graph.create(FORWARD)) == BAD_PARAMETER
        assert graph.finalize(graph.create(GRAPH)) == BAD_PARAMETER
        assert graph.finalize(graph.create(PLAN)) == BAD_PARAMETER

    def test_a_pack_without_a_tensor(self, library, graph):
        c = Convolution()
        plan = graph.plan(convolution(graph, c, "float32", FORWARD))
        assert graph.execute(plan, {X: library.put(numbers(c.x_shape, "float32"))}) == BAD_PARAMETER

    def test_operations_without_fallback_are_refused(self, graph):
        assert graph.finalize(graph.create(MATMUL)) == NOT_SUPPORTED
        by_value = graph.tensor(X, (2, 4, 9, 9), "float32", by_value=True)
        c = Convolution()
        others = [graph.tensor(W, c.w_shape, "float32"), graph.tensor(Y, c.y_shape, "float32")]
        assert graph.finalize(graph.operation(FORWARD, c, [by_value, *others])) == NOT_SUPPORTED
        x, y = (graph.tensor(name, (1, 2, 3, 4), "float32") for name in (1, 3))
        assert graph.finalize(pointwise(graph, 104, x, y)) == NOT_SUPPORTED

    def test_a_graph_has_one_engine(self, graph):
        operation = convolution(graph, Convolution(), "float32", FORWARD)
        assert graph.finalize(operation) == 0
        operation_graph = graph.descriptor(GRAPH, {801: (DESCRIPTOR, operation)})
        count = np.array([0], np.int64)
        assert (graph.get(operation_graph, 802, INT64, count), count[0]) == ((0, 1), 1)
        second = graph.create(ENGINE)
        assert graph.set(second, 1300, DESCRIPTOR, operation_graph) == graph.set(second, 1301, INT64, 1) == 0
        assert graph.finalize(second) == NOT_SUPPORTED
        assert graph.descriptor(ENGINE, {1300: (DESCRIPTOR, operation_graph), 1301: (INT64, 0)})


class TestCapture:
    """Captured calls are computed at each launch, from the call's own copies of its arguments."""

    @pytest.fixture
    def stream(self, library):
        return library.stream(1)

    @pytest.fixture
    def handle(self, library, stream):
        handle, queried = ctypes.c_void_p(), ctypes.c_void_p()
        library.call("cudnnCreate", ctypes.byref(handle))
        library.call("cudnnSetStream", handle, stream)
        library.call("cudnnGetStream", handle, ctypes.byref(queried))
        assert queried.value == stream.value
        return handle

    def test_a_plan(self, library, graph, stream, handle):
        c = Convolution()
        x, w = numbers(c.x_shape, "float32"), numbers(c.w_shape, "float32", 1)
        memory = {X: library.put(x), W: library.put(w), Y: library.put(np.zeros(c.y_shape, np.float32))}
        plan = graph.plan(convolution(graph, c, "float32", FORWARD, beta=1))

        def call():
            assert graph.execute(plan, memory, handle) == 0
            graph.destroy()

        executable, y = library.capture(stream, call), c.forward(x, w)
        assert not library.get(memory[Y], c.y_shape, np.float32).any()
        for launches in (1, 2):
            library.launch_graph(executable, stream)
            result = library.get(memory[Y], c.y_shape, np.float32)
            assert_close(result, launches * y, "float32", 4 * c.terms)

    def test_a_call_with_descriptors(self, library, stream, handle):
        x = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
        pooling = library.descriptor("Pooling", 0, 0, 2, *((ctypes.c_int * 2)(n, n) for n in (2, 0, 2)))
        x_descriptor, y_descriptor = library.tensor(x.shape, "float32"), library.tensor((1, 1, 2, 3), "float32")
        x_address, y_address = library.put(x), library.put(np.zeros(6, np.float32))
        alpha, beta = np.array([2], np.float32), np.array([0], np.float32)

        def call():
            library.call(
                "cudnnPoolingForward", handle, pooling, alpha, x_descriptor, x_address, beta, y_descriptor, y_address
            )
            alpha[0] = 100
            for kind, descriptor in (("Tensor", x_descriptor), ("Tensor", y_descriptor), ("Pooling", pooling)):
                library.call(f"cudnnDestroy{kind}Descriptor", descriptor)

        executable = library.capture(stream, call)
        assert not library.get(y_address, 6, np.float32).any()
        library.launch_graph(executable, stream)
        assert library.get(y_address, 6, np.float32).tolist() == [14, 18, 22, 38, 42, 46]
