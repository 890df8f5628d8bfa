"""CPU fallbacks of cuDNN against NumPy in double precision, in both layouts; gradients against differences.

`last` is the layout with channels last; `nd=False` uses the setter without Nd in its name.
"""

import ctypes
import itertools

import numpy as np
import pytest
from device_tensors import TYPES, Tensors, assert_close, numbers
from vendor_library import DNN, ints


class Convolution:
    """A reference convolution: a sum over the positions of its window; `flipped`: not a cross-correlation."""

    def __init__(self, rank=2, pads=1, strides=1, dilations=1, groups=1, window=3, flipped=False, size=9):
        self.pads, self.strides, self.dilations = [pads] * rank, [strides, *[1] * (rank - 1)], [dilations] * rank
        self.groups, self.flipped = groups, flipped
        self.x_shape = (2, 4 * groups, *[size] * rank)
        self.w_shape = (3 * groups, 4, *[window] * rank)
        self.window = [window] * rank
        space = [(size + 2 * pads - (window - 1) * dilations - 1) // stride + 1 for stride in self.strides]
        self.y_shape = (2, 3 * groups, *space)
        self.terms = 4 * window**rank  # products in an element of y

    def parts(self, x):
        """Yield (position in the filter, the input under that position, padded with zeros).

        The inputs are views; what the caller adds to them is written to x at the end.
        """
        padded = np.zeros((*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], self.pads, strict=True)]))
        interior = (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(x.shape[2:], self.pads, strict=True)])
        padded[interior] = x
        for position in itertools.product(*[range(n) for n in self.window]):
            window_slices = [
                slice(k * d, k * d + (n - 1) * s + 1, s)
                for k, d, s, n in zip(position, self.dilations, self.strides, self.y_shape[2:], strict=True)
            ]
            yield (
                tuple(n - 1 - k if self.flipped else k for n, k in zip(self.window, position, strict=True)),
                padded[(slice(None), slice(None), *window_slices)],
            )
        x[:] = padded[interior]

    def channels(self, group):
        return slice(4 * group, 4 * group + 4), slice(3 * group, 3 * group + 3)

    def forward(self, x, w):
        y = np.zeros(self.y_shape)
        for group in range(self.groups):
            x_channels, y_channels = self.channels(group)
            for position, part in self.parts(x.copy()):
                y[:, y_channels] += np.einsum(
                    "nc...,kc->nk...", part[:, x_channels], w[(y_channels, slice(None), *position)]
                )
        return y

    def backward_data(self, w, dy):
        dx = np.zeros(self.x_shape)
        for group in range(self.groups):
            x_channels, y_channels = self.channels(group)
            for position, part in self.parts(dx):
                part[:, x_channels] += np.einsum(
                    "nk...,kc->nc...", dy[:, y_channels], w[(y_channels, slice(None), *position)]
                )
        return dx

    def backward_filter(self, x, dy):
        dw, axes = np.zeros(self.w_shape), [0, *range(2, x.ndim)]
        for group in range(self.groups):
            x_channels, y_channels = self.channels(group)
            for position, part in self.parts(x.copy()):
                dw[(y_channels, slice(None), *position)] = np.tensordot(
                    dy[:, y_channels], part[:, x_channels], (axes, axes)
                )
        return dw

    def descriptor(self, library, data_type):
        mode = 0 if self.flipped else 1
        convolution = library.descriptor(
            "Convolution", len(self.pads), ints(self.pads), ints(self.strides), ints(self.dilations), mode, data_type
        )
        library.call("cudnnSetConvolutionGroupCount", convolution, self.groups)
        return convolution


CONVOLUTIONS = {
    "same": {},
    "valid": {"pads": 0},
    "strided": {"strides": 2},
    "dilated": {"dilations": 2, "pads": 2},
    "grouped": {"groups": 3},
    "flipped": {"flipped": True},
    "1x1": {"window": 1, "pads": 0},
    "3-d": {"rank": 3, "size": 5},
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("beta", [0, 0.5])
def test_a_convolution_and_its_gradients(library, dtype, last, kind, beta):
    c, tensors = Convolution(**CONVOLUTIONS[kind]), Tensors(library, dtype, last)
    x, w, dy = numbers(c.x_shape, dtype), numbers(c.w_shape, dtype, 1), numbers(c.y_shape, dtype, 2)
    convolution = c.descriptor(library, DNN[dtype])
    w_descriptor = library.descriptor("Filter", DNN[dtype], int(last), len(c.w_shape), ints(c.w_shape))
    w_address = library.put_tensor(w, last)
    (x_descriptor, x_address), (y_descriptor, dy_address) = tensors.put(x), tensors.put(dy)
    old_values = [
        numbers(shape, dtype, 3) if beta else np.full(shape, np.nan, dtype) for shape in (c.y_shape, c.x_shape)
    ]
    old_w = numbers(c.w_shape, dtype, 3) if beta else np.full(c.w_shape, np.nan, dtype)
    y, dx, dw_address = tensors.put(old_values[0]), tensors.put(old_values[1]), library.put_tensor(old_w, last)
    no_workspace = ctypes.c_void_p(), ctypes.c_size_t(0), tensors.scale(beta)
    alpha = tensors.scale(2)
    library.call(
        "cudnnConvolutionForward", None, alpha, x_descriptor, x_address, w_descriptor, w_address, convolution, 1,
        *no_workspace, *y,
    )  # fmt: skip
    library.call(
        "cudnnConvolutionBackwardData", None, alpha, w_descriptor, w_address, y_descriptor, dy_address, convolution, 1,
        *no_workspace, *dx,
    )  # fmt: skip
    library.call(
        "cudnnConvolutionBackwardFilter", None, alpha, x_descriptor, x_address, y_descriptor, dy_address, convolution,
        1, *no_workspace, w_descriptor, dw_address,
    )  # fmt: skip
    wx, ww, wy = (values.astype(np.float64) for values in (x, w, dy))
    scaled_old = [(beta * values.astype(np.float64) if beta else 0) for values in (*old_values, old_w)]
    half = dtype == "float16"  # only the last step rounds to half precision
    terms = 16 if half else 2 * c.terms
    assert_close(tensors.get(y, c.y_shape), 2 * c.forward(wx, ww) + scaled_old[0], dtype, terms)
    assert_close(tensors.get(dx, c.x_shape), 2 * c.backward_data(ww, wy) + scaled_old[1], dtype, terms)
    result = library.get_tensor(dw_address, c.w_shape, dtype, last).astype(np.float64)
    assert_close(result, 2 * c.backward_filter(wx, wy) + scaled_old[2], dtype, 60 if half else 4 * wy[0, 0].size)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_bias_and_its_gradient(library, dtype, last):
    c, tensors = Convolution(), Tensors(library, dtype, last)
    x, w, z, bias = (numbers(s, dtype, k) for k, s in enumerate((c.x_shape, c.w_shape, c.y_shape, (1, 3, 1, 1))))
    w_descriptor = library.descriptor("Filter", DNN[dtype], int(last), len(c.w_shape), ints(c.w_shape))
    relu = library.descriptor("Activation", 1, 0, ctypes.c_double(0), nd=False)
    y, db = tensors.put(np.zeros(c.y_shape, dtype)), tensors.put(np.zeros((1, 3, 1, 1), dtype))
    library.call(
        "cudnnConvolutionBiasActivationForward", None, tensors.scale(1), *tensors.put(x), w_descriptor,
        library.put_tensor(w, last), c.descriptor(library, DNN[dtype]), 0, None, ctypes.c_size_t(0), tensors.scale(0.5),
        *tensors.put(z), *tensors.put(bias), relu, *y,
    )  # fmt: skip
    exact = [values.astype(np.float64) for values in (x, w, z, bias)]
    expected = np.maximum(c.forward(*exact[:2]) + 0.5 * exact[2] + exact[3], 0)
    terms = 40 if dtype != "float16" else 16
    assert_close(tensors.get(y, c.y_shape), expected, dtype, terms)
    library.call("cudnnConvolutionBackwardBias", None, tensors.scale(1), *tensors.put(z), tensors.scale(0), *db)
    assert_close(
        tensors.get(db, (1, 3, 1, 1)), exact[2].sum((0, 2, 3), keepdims=True), dtype, 162 if dtype != "float16" else 20
    )
    library.call("cudnnAddTensor", None, tensors.scale(2), *tensors.put(bias), tensors.scale(1), *y)
    assert_close(tensors.get(y, c.y_shape), expected + 2 * exact[3], dtype, terms)


def pool(x, mode, window, pad, stride):
    """Return the result of a pooling, and its derivative by each input."""
    size = [(n + 2 * pad - window) // stride + 1 for n in x.shape[2:]]
    y, slopes = np.zeros((*x.shape[:2], *size)), np.zeros((*x.shape[:2], *size, *x.shape[2:]))
    for position in itertools.product(*[range(n) for n in size]):
        window_slices = tuple(
            slice(max(k * stride - pad, 0), min(k * stride - pad + window, n))
            for k, n in zip(position, x.shape[2:], strict=True)
        )
        part = x[(slice(None), slice(None), *window_slices)]
        flat = part.reshape(*part.shape[:2], -1)
        output_index = (slice(None), slice(None), *position)
        if mode in (0, 3):
            y[output_index] = flat.max(-1)
            weights = (np.arange(flat.shape[-1]) == flat.argmax(-1)[..., None]).astype(np.float64)
        else:
            count = window ** (x.ndim - 2) if mode == 1 else flat.shape[-1]
            y[output_index] = flat.sum(-1) / count
            weights = np.full(flat.shape, 1 / count)
        slopes[(*output_index, *window_slices)] = weights.reshape(part.shape)
    return y, slopes


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("rank", "window", "pad", "stride"), [(2, 2, 0, 2), (2, 3, 1, 2), (2, 3, 1, 1), (3, 2, 0, 1)])
def test_pooling(library, dtype, last, mode, rank, window, pad, stride):
    tensors = Tensors(library, dtype, last)
    # There are few values, so some are equal: the first of them gets the gradient.
    x = np.random.default_rng(0).integers(-2, 3, (2, 3, *[6] * rank)).astype(dtype)
    y, slopes = pool(x.astype(np.float64), mode, window, pad, stride)
    dy = numbers(y.shape, dtype, 1)
    pooling = library.descriptor("Pooling", mode, 0, rank, *(ints([value] * rank) for value in (window, pad, stride)))
    output, dy_tensor, x_tensor = tensors.put(np.zeros(y.shape, dtype)), tensors.put(dy), tensors.put(x)
    dx = tensors.put(np.zeros(x.shape, dtype))
    library.call("cudnnPoolingForward", None, pooling, tensors.scale(1), *x_tensor, tensors.scale(0), *output)
    assert_close(tensors.get(output, y.shape), y, dtype, 8)
    library.call(
        "cudnnPoolingBackward", None, pooling, tensors.scale(1), *output, *dy_tensor, *x_tensor, tensors.scale(0), *dx
    )
    expected = np.einsum("nc" + "abd"[:rank] + "xyz"[:rank] + ",nc" + "abd"[:rank] + "->nc" + "xyz"[:rank], slopes, dy)
    assert_close(tensors.get(dx, x.shape), expected, dtype, 30)


ACTIVATIONS = [
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: np.maximum(x, 0),
    np.tanh,
    lambda x: np.minimum(np.maximum(x, 0), 0.5),
    lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", range(5))
def test_activation_and_its_gradient(library, dtype, mode):
    tensors, shape = Tensors(library, dtype), (2, 3, 4, 5)
    x, dy = numbers(shape, dtype), numbers(shape, dtype, 1)
    activation = library.descriptor("Activation", mode, 0, ctypes.c_double(0.5), nd=False)
    x_tensor, y, dx = tensors.put(x), tensors.put(np.zeros(shape, dtype)), tensors.put(np.zeros(shape, dtype))
    library.call("cudnnActivationForward", None, activation, tensors.scale(1), *x_tensor, tensors.scale(0), *y)
    f, exact = ACTIVATIONS[mode], x.astype(np.float64)
    assert_close(tensors.get(y, shape), f(exact), dtype)
    library.call(
        "cudnnActivationBackward", None, activation, tensors.scale(1), *y, *tensors.put(dy), *x_tensor,
        tensors.scale(0), *dx,
    )  # fmt: skip
    slope = (f(exact + 1e-6) - f(exact - 1e-6)) / 2e-6
    assert np.abs(tensors.get(dx, shape) - dy * slope).max() < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("mode", [0, 1])
def test_softmax(library, dtype, last, log, mode):
    tensors, shape = Tensors(library, dtype, last), (2, 5, 3, 4)
    x, dy = 30 * numbers(shape, dtype), numbers(shape, dtype, 1)
    axes = (1,) if mode else (1, 2, 3)
    y, dx = tensors.put(np.zeros(shape, dtype)), tensors.put(np.zeros(shape, dtype))
    algorithm = 2 if log else 1
    library.call("cudnnSoftmaxForward", None, algorithm, mode, tensors.scale(1), *tensors.put(x), tensors.scale(0), *y)
    exact, slopes = x.astype(np.float64), dy.astype(np.float64)
    shifted = exact - exact.max(axes, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axes, keepdims=True))
    result = tensors.get(y, shape)
    assert_close(result, logs if log else np.exp(logs), dtype, 200 if log else 20)
    library.call(
        "cudnnSoftmaxBackward", None, algorithm, mode, tensors.scale(1), *y, *tensors.put(dy), tensors.scale(0), *dx
    )
    p = np.exp(logs)
    expected = (
        slopes - p * slopes.sum(axes, keepdims=True) if log else p * (slopes - (slopes * p).sum(axes, keepdims=True))
    )
    assert_close(tensors.get(dx, shape), expected, dtype, 200)


def test_transform_and_set_tensor(library):
    values = numbers((2, 3, 4, 5), "float32")
    planes, last = (Tensors(library, "float32", last) for last in (False, True))
    target = last.put(np.zeros(values.shape, np.float32))
    library.call("cudnnTransformTensor", None, last.scale(2), *planes.put(values), last.scale(0), *target)
    assert (last.get(target, values.shape) == 2 * values).all()
    library.call("cudnnScaleTensor", None, *target, last.scale(0.5))
    assert (last.get(target, values.shape) == values).all()
    library.call("cudnnSetTensor", None, *target, last.scale(3))
    assert (last.get(target, values.shape) == 3).all()


def test_invalid_shapes_return_the_errors_of_cudnn(library):
    tensors = Tensors(library, "float32")
    pooling = library.descriptor("Pooling", 0, 0, 2, *(ints([value] * 2) for value in (2, 0, 2)))
    x, y = tensors.put(np.zeros((2, 3, 6, 6), np.float32)), tensors.put(np.zeros((2, 4, 3, 3), np.float32))
    assert library.status("cudnnPoolingForward", None, pooling, tensors.scale(1), *x, tensors.scale(0), *y) == 3
    assert library.status("cudnnSetTensorNdDescriptor", None, 0, 4, ints([1] * 4), ints([1] * 4)) == 3


def test_one_algorithm_is_offered_to_auto_tuners(library):
    size, nothing = ctypes.c_size_t(7), [ctypes.c_void_p()] * 5
    statuses = [
        library.status(f"cudnnGetConvolution{direction}WorkspaceSize", *nothing, algorithm, ctypes.byref(size))
        for direction in ("Forward", "BackwardData", "BackwardFilter")
        for algorithm in (0, 1, 2, 6)
    ]
    assert (statuses, size.value) == ([0, 0, 9, 9] * 3, 0)
