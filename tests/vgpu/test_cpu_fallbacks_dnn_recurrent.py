"""cuDNN's recurrent networks, computed by CPU fallbacks: outputs against NumPy in double precision, gradients against
differences."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from device_tensors import assert_close, numbers
from vendor_library import DNN, ints

RELU, TANH, LSTM, GRU = range(4)  # cudnn_adv.h: cudnnRNNMode_t
CELLS = {"relu": RELU, "tanh": TANH, "lstm": LSTM, "gru": GRU}
NO_BIAS, INPUT_BIAS, BOTH_BIASES, RECURRENT_BIAS = range(4)  # cudnnRNNBiasMode_t
SEQUENCE_MAJOR, PACKED, BATCH_MAJOR = range(3)  # cudnnRNNDataLayout_t
BAD_PARAMETER, NOT_SUPPORTED = 3, 9
INPUT, HIDDEN, BATCH, STEPS = 4, 3, 2, 3
SIZE = ctypes.c_size_t


def add(product, bias):
    return product if bias is None else product + bias


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Network:
    """A network with its descriptors, weights in device memory, and definition in NumPy; `two`: it is bidirectional."""

    def __init__(self, library, cell, layers=1, two=False, bias=BOTH_BIASES, layout=SEQUENCE_MAJOR, **others):
        self.library, self.cell, self.layers, self.directions = library, CELLS[cell], layers, 1 + two
        self.dtype, self.lengths = others.get("dtype", "float64"), others.get("lengths", [STEPS] * BATCH)
        self.bias, self.layout, self.gates = bias, layout, {LSTM: 4, GRU: 3}.get(self.cell, 1)
        kind, projection = DNN[self.dtype], others.get("projection", HIDDEN)
        self.dropout = self.create("Dropout")
        rate = ctypes.c_float(others.get("dropout", 0))
        library.call("cudnnSetDropoutDescriptor", self.dropout, None, rate, None, SIZE(0), ctypes.c_ulonglong(1))
        self.description = self.create("RNN")
        library.call(
            "cudnnSetRNNDescriptor_v8",
            self.description,
            0,
            self.cell,
            bias,
            int(two),
            0,
            kind,
            kind,
            0,
            INPUT,
            HIDDEN,
            projection,
            layers,
            self.dropout,
            0,
        )
        self.x_desc = self.create("RNNData")
        library.call(
            "cudnnSetRNNDataDescriptor", self.x_desc, kind, layout, STEPS, BATCH, INPUT, ints(self.lengths), None
        )
        self.y_size = self.directions * HIDDEN

    def create(self, kind):
        handle = ctypes.c_void_p()
        self.library.call(f"cudnnCreate{kind}Descriptor", ctypes.byref(handle))
        return handle

    def sizes(self):
        """Bytes of the weights and of the reserve space."""
        weights, work, reserve = SIZE(), SIZE(7), SIZE()
        self.library.call("cudnnGetRNNWeightSpaceSize", None, self.description, ctypes.byref(weights))
        self.library.call(
            "cudnnGetRNNTempSpaceSizes",
            None,
            self.description,
            1,
            self.x_desc,
            ctypes.byref(work),
            ctypes.byref(reserve),
        )
        assert work.value == 0
        return weights.value, reserve.value

    def parameter(self, weights, layer, gate):
        """Matrix and bias of a gate, as views of an array of all weights; None for no bias."""
        matrix, bias = ctypes.c_void_p(), ctypes.c_void_p()
        matrix_desc, bias_desc = self.create("Tensor"), self.create("Tensor")
        base = 1 << 20  # stands for the address of the weights, which the call does not read
        self.library.call(
            "cudnnGetRNNWeightParams",
            None,
            self.description,
            layer,
            SIZE(weights.nbytes),
            ctypes.c_void_p(base),
            gate,
            matrix_desc,
            ctypes.byref(matrix),
            bias_desc,
            ctypes.byref(bias),
        )
        views = []
        for at, description in ((matrix, matrix_desc), (bias, bias_desc)):
            kind, rank, dims, strides = ctypes.c_int(), ctypes.c_int(), ints([0] * 3), ints([0] * 3)
            self.library.call(
                "cudnnGetTensorNdDescriptor", description, 3, ctypes.byref(kind), ctypes.byref(rank), dims, strides
            )
            assert (kind.value, rank.value) == (DNN[self.dtype], 3)
            begin = ((at.value or base) - base) // np.dtype(self.dtype).itemsize
            size = int(np.prod(dims))
            views.append(weights[begin : begin + size].reshape(list(dims)[1:]) if at.value else None)
        return views[0], views[1] if views[1] is None else views[1][:, 0]

    def define(self, weights, x, h, c):
        """y, h and c of the last step, by the definition; of sequences by time and sample."""
        h, c, inputs = h.copy(), c.copy(), x
        for layer in range(self.layers):
            outputs = np.zeros((STEPS, BATCH, self.y_size))
            for direction in range(self.directions):
                p = layer * self.directions + direction
                gates = [self.parameter(weights, p, gate) for gate in range(2 * self.gates)]
                for n, length in enumerate(self.lengths):
                    for t in range(length) if direction == 0 else reversed(range(length)):
                        a = [add(m @ inputs[t, n], b) for m, b in gates[: self.gates]]
                        r = [add(m @ h[p, n], b) for m, b in gates[self.gates :]]
                        if self.cell == LSTM:
                            i, f, g, o = (
                                k(u + v) for k, u, v in zip((sigmoid, sigmoid, np.tanh, sigmoid), a, r, strict=True)
                            )
                            c[p, n] = f * c[p, n] + i * g
                            h[p, n] = o * np.tanh(c[p, n])
                        elif self.cell == GRU:
                            reset, update = sigmoid(a[0] + r[0]), sigmoid(a[1] + r[1])
                            h[p, n] = (1 - update) * np.tanh(a[2] + reset * r[2]) + update * h[p, n]
                        else:
                            total = a[0] + r[0]
                            h[p, n] = np.maximum(total, 0) if self.cell == RELU else np.tanh(total)
                        outputs[t, n, direction * HIDDEN : (direction + 1) * HIDDEN] = h[p, n]
            inputs = outputs
        return inputs, h, c

    def rows(self):
        """Time and sample of each vector in memory; None where no sequence is."""
        every = [(t, n) for t in range(STEPS) for n in range(BATCH)]
        if self.layout == BATCH_MAJOR:
            every = [(t, n) for n in range(BATCH) for t in range(STEPS)]
        there = [t < self.lengths[n] for t, n in every]
        if self.layout == PACKED:
            return [row for row, is_there in zip(every, there, strict=True) if is_there]
        return [row if is_there else None for row, is_there in zip(every, there, strict=True)]

    def put_sequences(self, values):
        empty = np.zeros(values.shape[-1], values.dtype)
        return self.library.put(np.array([empty if row is None else values[row] for row in self.rows()]))

    def get_sequences(self, at, size):
        rows = self.rows()
        values = np.zeros((STEPS, BATCH, size))
        memory = self.library.get(at, (len(rows), size), self.dtype)
        for row, vector in zip(rows, memory, strict=True):
            if row is None:
                assert not vector.any(), "padding is filled with zeros"
            else:
                values[row] = vector
        return values


class Run:
    """A network on random inputs: forward, and both calls of gradients for random gradients of what it gives."""

    def __init__(self, network):
        self.network, self.library, dtype = network, network.library, network.dtype
        self.weight_bytes, self.reserve_bytes = network.sizes()
        self.weights = numbers(self.weight_bytes // np.dtype(dtype).itemsize, dtype, 1)
        states = (network.layers * network.directions, BATCH, HIDDEN)
        self.x, self.h, self.c = (
            numbers((STEPS, BATCH, INPUT), dtype, 2),
            numbers(states, dtype, 3),
            numbers(states, dtype, 4),
        )
        self.at_x, self.at_h, self.at_c = (
            network.put_sequences(self.x),
            self.library.put(self.h),
            self.library.put(self.c),
        )
        self.at_weights = self.library.put(self.weights)
        self.y = network.put_sequences(np.full((STEPS, BATCH, network.y_size), np.nan, dtype))
        self.hy, self.cy = (self.library.put(np.full(states, np.nan, dtype)) for _ in range(2))
        self.reserve = self.library.put(np.zeros(max(self.reserve_bytes, 1), np.uint8))
        # Size and address of the weights, of the workspace and of the reserve space.
        self.spaces = SIZE(self.weight_bytes), self.at_weights, SIZE(0), None, SIZE(self.reserve_bytes), self.reserve

    def forward(self, training=1, **changes):
        n, spaces = self.network, changes.get("spaces", self.spaces)
        return self.library.status(
            "cudnnRNNForward",
            None,
            n.description,
            training,
            None,
            n.x_desc,
            self.at_x,
            n.x_desc,
            self.y,
            None,
            self.at_h,
            self.hy,
            None,
            self.at_c,
            self.cy,
            *spaces,
        )

    def gradients(self, dy, dh, dc):
        """Of x, h, c and the weights."""
        n, dtype, states = self.network, self.network.dtype, self.h.shape
        dx = n.put_sequences(np.full((STEPS, BATCH, INPUT), np.nan, dtype))
        dhx, dcx = (self.library.put(np.full(states, np.nan, dtype)) for _ in range(2))
        old = numbers(self.weights.shape, dtype, 9)
        dw = self.library.put(old)
        put = n.put_sequences(dy.astype(dtype)), self.library.put(dh.astype(dtype)), self.library.put(dc.astype(dtype))
        self.library.call(
            "cudnnRNNBackwardData_v8",
            None,
            n.description,
            None,
            n.x_desc,
            self.y,
            put[0],
            n.x_desc,
            dx,
            None,
            self.at_h,
            put[1],
            dhx,
            None,
            self.at_c,
            put[2],
            dcx,
            *self.spaces,
        )
        self.library.call(
            "cudnnRNNBackwardWeights_v8",
            None,
            n.description,
            0,
            None,
            n.x_desc,
            self.at_x,
            None,
            self.at_h,
            n.x_desc,
            self.y,
            self.spaces[0],
            dw,
            *self.spaces[2:],
        )
        found = self.library.get(dw, old.shape, dtype) - old  # added to what was there
        return n.get_sequences(dx, INPUT), *(self.library.get(at, states, dtype) for at in (dhx, dcx)), found


SHAPES = {
    "one layer": {}, "two layers": {"layers": 2}, "both directions": {"two": True}, "all": {"layers": 2, "two": True},
    "no bias": {"bias": NO_BIAS}, "input bias": {"bias": INPUT_BIAS}, "recurrent bias": {"bias": RECURRENT_BIAS},
    "packed": {"layout": PACKED, "lengths": [3, 1], "two": True},
    "padded": {"layout": BATCH_MAJOR, "lengths": [1, 3], "two": True},
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_gradients(library, cell, shape):
    network = Network(library, cell, **SHAPES[shape])
    run = Run(network)
    assert run.forward() == 0
    y, h, c = network.define(run.weights, run.x, run.h, run.c)
    assert_close(network.get_sequences(run.y, network.y_size), y, "float64", 100)
    assert_close(library.get(run.hy, h.shape, "float64"), h, "float64", 100)
    if cell == "lstm":
        assert_close(library.get(run.cy, c.shape, "float64"), c, "float64", 100)
    dy, dh, dc = numbers(y.shape, "float64", 5), numbers(h.shape, "float64", 6), numbers(c.shape, "float64", 7)
    dc *= cell == "lstm"
    inputs = [run.x, run.h, run.c, run.weights]

    def loss():
        y, h, c = network.define(run.weights, run.x, run.h, run.c)
        return (y * dy).sum() + (h * dh).sum() + (c * dc).sum()

    for number, (values, found) in enumerate(zip(inputs, run.gradients(dy, dh, dc), strict=True)):
        if number == 2 and cell != "lstm":
            continue
        rng = np.random.default_rng(number)
        for at in rng.choice(values.size, min(values.size, 12), replace=False):
            old = values.flat[at]
            ends = []
            for step in (1e-6, -1e-6):
                values.flat[at] = old + step
                ends.append(loss())
            values.flat[at] = old
            assert abs((ends[0] - ends[1]) / 2e-6 - found.flat[at]) < 1e-7, (number, at)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_weight_belongs_to_one_parameter(library, cell, shape):
    network = Network(library, cell, **SHAPES[shape])
    owners = np.zeros(network.sizes()[0] // 8)
    for layer in range(network.layers * network.directions):
        for gate in range(2 * network.gates):
            matrix, bias = network.parameter(owners, layer, gate)
            matrix += 1
            if bias is not None:
                bias += 1
    assert set(owners) == {1}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("cell", CELLS)
def test_half_and_single_precision(library, cell, dtype):
    network = Network(library, cell, dtype=dtype, layers=2)
    run = Run(network)
    assert run.forward() == 0
    wide = [values.astype(np.float64) for values in (run.weights, run.x, run.h, run.c)]
    y, h, _ = network.define(*wide)
    assert_close(network.get_sequences(run.y, network.y_size), y, dtype, 100)
    assert_close(library.get(run.hy, h.shape, dtype).astype(np.float64), h, dtype, 100)


def test_inference_needs_no_reserve_space(library):
    network = Network(library, "lstm", layers=2, dropout=0.5)
    run = Run(network)
    spaces = (*run.spaces[:4], SIZE(0), None)
    assert run.forward(training=0, spaces=spaces) == 0
    y, _, _ = network.define(run.weights, run.x, run.h, run.c)
    assert_close(network.get_sequences(run.y, network.y_size), y, "float64", 100)
    assert "cudnnRNNForward" in library.fallback_calls()


def test_states_that_are_null_are_zeros(library):
    network = Network(library, "lstm")
    run = Run(network)
    run.at_h = run.at_c = run.hy = None
    assert run.forward() == 0
    y, _, c = network.define(run.weights, run.x, 0 * run.h, 0 * run.c)
    assert_close(network.get_sequences(run.y, network.y_size), y, "float64", 100)
    assert_close(library.get(run.cy, c.shape, "float64"), c, "float64", 100)


@pytest.mark.parametrize(
    ("others", "status"),
    [
        ({"layers": 2, "dropout": 0.5}, NOT_SUPPORTED),
        ({"projection": 2}, NOT_SUPPORTED),
        ({"lengths": [1, 3], "layout": PACKED}, BAD_PARAMETER),
        ({"lengths": [1, 4]}, BAD_PARAMETER),
        ({"layers": 1, "dropout": 0.5}, 0),
    ],
)
def test_unsupported_and_invalid_networks_are_refused(library, others, status):
    good = Run(Network(library, "lstm", layers=others.get("layers", 1)))
    good.network = Network(library, "lstm", **others)
    if status == NOT_SUPPORTED:
        with pytest.raises(NotImplementedError, match="cudnnRNNForward is not on the virtual GPU"):
            good.forward()
    else:
        assert good.forward() == status


def test_spaces_that_are_too_small(library):
    run = Run(Network(library, "gru"))
    weights, at_weights, work, at_work, reserve, at_reserve = run.spaces
    assert (
        run.forward(spaces=(SIZE(weights.value - 1), at_weights, work, at_work, reserve, at_reserve)) == BAD_PARAMETER
    )
    assert (
        run.forward(spaces=(weights, at_weights, work, at_work, SIZE(reserve.value - 1), at_reserve)) == BAD_PARAMETER
    )
    assert run.forward() == 0


def test_missing_parameters_are_refused(library):
    network, at = Network(library, "gru"), ctypes.c_void_p()
    for layer, number in ((1, 0), (-1, 0), (0, 6), (0, -1)):
        arguments = [None, network.description, layer, SIZE(0), None, number, None, ctypes.byref(at), None, None]
        assert library.status("cudnnGetRNNWeightParams", *arguments) == BAD_PARAMETER


def test_descriptors_return_their_settings(library):
    """TensorFlow asks for it, and for some attributes alone."""
    network = Network(library, "gru", layers=2, two=True, bias=INPUT_BIAS, dropout=0.25)
    fields = [ctypes.c_int(-1) for _ in range(12)]
    dropout, flags = ctypes.c_void_p(), ctypes.c_uint(7)
    pointers = [*map(ctypes.byref, fields), ctypes.byref(dropout), ctypes.byref(flags)]
    library.call("cudnnGetRNNDescriptor_v8", network.description, *pointers)
    kind = DNN["float64"]
    assert [field.value for field in fields] == [0, GRU, INPUT_BIAS, 1, 0, kind, kind, 0, INPUT, HIDDEN, HIDDEN, 2]
    assert (dropout.value, flags.value) == (network.dropout.value, 0)
    library.call("cudnnGetRNNDescriptor_v8", network.description, *[None] * 14)
    probability, states, seed = ctypes.c_float(), ctypes.c_void_p(8), ctypes.c_ulonglong()
    pointers = [ctypes.byref(value) for value in (probability, states, seed)]
    library.call("cudnnGetDropoutDescriptor", network.dropout, None, *pointers)
    assert (probability.value, states.value, seed.value) == (0.25, None, 1)


SHORT_RESERVE = """import sys
from pathlib import Path
from vendor_library import Library
from test_cpu_fallbacks_dnn_recurrent import Network, Run
library = Library(Path(sys.argv[1]))
run = Run(Network(library, "lstm"))
assert run.forward() == 0
n, (size, _, *rest) = run.network, run.spaces
rest[-1] = library.put(run.x)  # smaller than the size that is passed
print(library.status("cudnnRNNBackwardWeights_v8", None, n.description, 0, None, n.x_desc, run.at_x, None, run.at_h,
                     n.x_desc, run.y, size, run.at_weights, *rest))
"""


def test_memory_smaller_than_its_size_is_a_kernels_error(tmp_path):
    """In a process of its own, as the error stays with the device."""
    command = [sys.executable, "-c", SHORT_RESERVE, str(tmp_path)]
    process = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=300)
    assert (process.returncode, process.stdout) == (0, "8\n"), process.stderr  # CUDNN_STATUS_EXECUTION_FAILED
    assert "an access outside of what was allocated in cudnnRNNBackwardWeights_v8" in process.stderr
