"""cuDNN's stand-ins against NumPy in double precision, in both layouts; gradients against differences."""

import ctypes
import itertools

import numpy as np
import pytest
from closed_library import DNN, ints
from stand_in_tensors import TYPES, Tensors, close, numbers


class Convolution:
    """By its definition, place by place."""

    def __init__(self, rank=2, pads=1, strides=1, dilations=1, groups=1, window=3, flipped=False, size=9):
        self.pads, self.strides, self.dilations = [pads] * rank, [strides, *[1] * (rank - 1)], [dilations] * rank
        self.groups, self.flipped = groups, flipped
        self.x_shape = (2, 4 * groups, *[size] * rank)
        self.w_shape = (3 * groups, 4, *[window] * rank)
        self.window = [window] * rank
        space = [(size + 2 * pads - (window - 1) * dilations - 1) // by + 1 for by in self.strides]
        self.y_shape = (2, 3 * groups, *space)
        self.terms = 4 * window**rank

    def parts(self, x):
        """The input under each place of the window, where the padding is zero; x may be written through them."""
        padded = np.zeros((*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], self.pads, strict=True)]))
        inner = (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(x.shape[2:], self.pads, strict=True)])
        padded[inner] = x
        for place in itertools.product(*[range(n) for n in self.window]):
            cut = [
                slice(at * d, at * d + (n - 1) * s + 1, s)
                for at, d, s, n in zip(place, self.dilations, self.strides, self.y_shape[2:], strict=True)
            ]
            yield (
                tuple(n - 1 - at if self.flipped else at for n, at in zip(self.window, place, strict=True)),
                padded[(slice(None), slice(None), *cut)],
            )
        x[:] = padded[inner]

    def channels(self, group):
        return slice(4 * group, 4 * group + 4), slice(3 * group, 3 * group + 3)

    def forward(self, x, w):
        y = np.zeros(self.y_shape)
        for group in range(self.groups):
            of_x, of_y = self.channels(group)
            for place, part in self.parts(x.copy()):
                y[:, of_y] += np.einsum("nc...,kc->nk...", part[:, of_x], w[(of_y, slice(None), *place)])
        return y

    def backward_data(self, w, dy):
        dx = np.zeros(self.x_shape)
        for group in range(self.groups):
            of_x, of_y = self.channels(group)
            for place, part in self.parts(dx):
                part[:, of_x] += np.einsum("nk...,kc->nc...", dy[:, of_y], w[(of_y, slice(None), *place)])
        return dx

    def backward_filter(self, x, dy):
        dw, axes = np.zeros(self.w_shape), [0, *range(2, x.ndim)]
        for group in range(self.groups):
            of_x, of_y = self.channels(group)
            for place, part in self.parts(x.copy()):
                dw[(of_y, slice(None), *place)] = np.tensordot(dy[:, of_y], part[:, of_x], (axes, axes))
        return dw

    def descriptor(self, library, kind):
        mode = 0 if self.flipped else 1
        made = library.descriptor(
            "Convolution", len(self.pads), ints(self.pads), ints(self.strides), ints(self.dilations), mode, kind
        )
        library.call("cudnnSetConvolutionGroupCount", made, self.groups)
        return made


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
    c, on = Convolution(**CONVOLUTIONS[kind]), Tensors(library, dtype, last)
    x, w, dy = numbers(c.x_shape, dtype), numbers(c.w_shape, dtype, 1), numbers(c.y_shape, dtype, 2)
    how = c.descriptor(library, DNN[dtype])
    of_w = library.descriptor("Filter", DNN[dtype], int(last), len(c.w_shape), ints(c.w_shape))
    at_w = library.put_tensor(w, last)
    (of_x, at_x), (of_y, at_dy) = on.put(x), on.put(dy)
    old = [numbers(shape, dtype, 3) if beta else np.full(shape, np.nan, dtype) for shape in (c.y_shape, c.x_shape)]
    old_w = numbers(c.w_shape, dtype, 3) if beta else np.full(c.w_shape, np.nan, dtype)
    y, dx, at_dw = on.put(old[0]), on.put(old[1]), library.put_tensor(old_w, last)
    none = ctypes.c_void_p(), ctypes.c_size_t(0), on.scale(beta)
    alpha = on.scale(2)
    library.call("cudnnConvolutionForward", None, alpha, of_x, at_x, of_w, at_w, how, 1, *none, *y)
    library.call("cudnnConvolutionBackwardData", None, alpha, of_w, at_w, of_y, at_dy, how, 1, *none, *dx)
    library.call("cudnnConvolutionBackwardFilter", None, alpha, of_x, at_x, of_y, at_dy, how, 1, *none, of_w, at_dw)
    wx, ww, wy = (one.astype(np.float64) for one in (x, w, dy))
    kept = [(beta * one.astype(np.float64) if beta else 0) for one in (*old, old_w)]
    half = dtype == "float16"  # of which only the last step rounds
    terms = 16 if half else 2 * c.terms
    close(on.get(y, c.y_shape), 2 * c.forward(wx, ww) + kept[0], dtype, terms)
    close(on.get(dx, c.x_shape), 2 * c.backward_data(ww, wy) + kept[1], dtype, terms)
    found = library.get_tensor(at_dw, c.w_shape, dtype, last).astype(np.float64)
    close(found, 2 * c.backward_filter(wx, wy) + kept[2], dtype, 60 if half else 4 * wy[0, 0].size)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_biases(library, dtype, last):
    c, on = Convolution(), Tensors(library, dtype, last)
    x, w, z, bias = (numbers(s, dtype, k) for k, s in enumerate((c.x_shape, c.w_shape, c.y_shape, (1, 3, 1, 1))))
    of_w = library.descriptor("Filter", DNN[dtype], int(last), len(c.w_shape), ints(c.w_shape))
    relu = library.descriptor("Activation", 1, 0, ctypes.c_double(0), nd=False)
    y, db = on.put(np.zeros(c.y_shape, dtype)), on.put(np.zeros((1, 3, 1, 1), dtype))
    library.call(
        "cudnnConvolutionBiasActivationForward", None, on.scale(1), *on.put(x), of_w, library.put_tensor(w, last),
        c.descriptor(library, DNN[dtype]), 0, None, ctypes.c_size_t(0), on.scale(0.5), *on.put(z), *on.put(bias),
        relu, *y,
    )  # fmt: skip
    wide = [one.astype(np.float64) for one in (x, w, z, bias)]
    wanted = np.maximum(c.forward(*wide[:2]) + 0.5 * wide[2] + wide[3], 0)
    terms = 40 if dtype != "float16" else 16
    close(on.get(y, c.y_shape), wanted, dtype, terms)
    library.call("cudnnConvolutionBackwardBias", None, on.scale(1), *on.put(z), on.scale(0), *db)
    close(on.get(db, (1, 3, 1, 1)), wide[2].sum((0, 2, 3), keepdims=True), dtype, 162 if dtype != "float16" else 20)
    library.call("cudnnAddTensor", None, on.scale(2), *on.put(bias), on.scale(1), *y)
    close(on.get(y, c.y_shape), wanted + 2 * wide[3], dtype, terms)


def pooled(x, mode, window, pad, stride):
    size = [(n + 2 * pad - window) // stride + 1 for n in x.shape[2:]]
    y, dx_of = np.zeros((*x.shape[:2], *size)), np.zeros((*x.shape[:2], *size, *x.shape[2:]))
    for at in itertools.product(*[range(n) for n in size]):
        cut = tuple(
            slice(max(k * stride - pad, 0), min(k * stride - pad + window, n))
            for k, n in zip(at, x.shape[2:], strict=True)
        )
        part = x[(slice(None), slice(None), *cut)]
        flat = part.reshape(*part.shape[:2], -1)
        where = (slice(None), slice(None), *at)
        if mode in (0, 3):
            y[where] = flat.max(-1)
            share = (np.arange(flat.shape[-1]) == flat.argmax(-1)[..., None]).astype(np.float64)
        else:
            count = window ** (x.ndim - 2) if mode == 1 else flat.shape[-1]
            y[where] = flat.sum(-1) / count
            share = np.full(flat.shape, 1 / count)
        dx_of[(*where, *cut)] = share.reshape(part.shape)
    return y, dx_of


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("rank", "window", "pad", "stride"), [(2, 2, 0, 2), (2, 3, 1, 2), (2, 3, 1, 1), (3, 2, 0, 1)])
def test_pooling(library, dtype, last, mode, rank, window, pad, stride):
    on = Tensors(library, dtype, last)
    # Of few values, for some are equal: the first one gets the gradient.
    x = np.random.default_rng(0).integers(-2, 3, (2, 3, *[6] * rank)).astype(dtype)
    y, share = pooled(x.astype(np.float64), mode, window, pad, stride)
    dy = numbers(y.shape, dtype, 1)
    how = library.descriptor("Pooling", mode, 0, rank, *(ints([one] * rank) for one in (window, pad, stride)))
    made, given, at_x = on.put(np.zeros(y.shape, dtype)), on.put(dy), on.put(x)
    dx = on.put(np.zeros(x.shape, dtype))
    library.call("cudnnPoolingForward", None, how, on.scale(1), *at_x, on.scale(0), *made)
    close(on.get(made, y.shape), y, dtype, 8)
    library.call("cudnnPoolingBackward", None, how, on.scale(1), *made, *given, *at_x, on.scale(0), *dx)
    wanted = np.einsum("nc" + "abd"[:rank] + "xyz"[:rank] + ",nc" + "abd"[:rank] + "->nc" + "xyz"[:rank], share, dy)
    close(on.get(dx, x.shape), wanted, dtype, 30)


ACTIVATIONS = [
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: np.maximum(x, 0),
    np.tanh,
    lambda x: np.minimum(np.maximum(x, 0), 0.5),
    lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", range(5))
def test_an_activation_and_its_slope(library, dtype, mode):
    on, shape = Tensors(library, dtype), (2, 3, 4, 5)
    x, dy = numbers(shape, dtype), numbers(shape, dtype, 1)
    how = library.descriptor("Activation", mode, 0, ctypes.c_double(0.5), nd=False)
    at_x, y, dx = on.put(x), on.put(np.zeros(shape, dtype)), on.put(np.zeros(shape, dtype))
    library.call("cudnnActivationForward", None, how, on.scale(1), *at_x, on.scale(0), *y)
    f, wide = ACTIVATIONS[mode], x.astype(np.float64)
    close(on.get(y, shape), f(wide), dtype)
    library.call("cudnnActivationBackward", None, how, on.scale(1), *y, *on.put(dy), *at_x, on.scale(0), *dx)
    slope = (f(wide + 1e-6) - f(wide - 1e-6)) / 2e-6
    assert np.abs(on.get(dx, shape) - dy * slope).max() < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("mode", [0, 1])
def test_softmax(library, dtype, last, log, mode):
    on, shape = Tensors(library, dtype, last), (2, 5, 3, 4)
    x, dy = 30 * numbers(shape, dtype), numbers(shape, dtype, 1)
    axes = (1,) if mode else (1, 2, 3)
    y, dx = on.put(np.zeros(shape, dtype)), on.put(np.zeros(shape, dtype))
    algorithm = 2 if log else 1
    library.call("cudnnSoftmaxForward", None, algorithm, mode, on.scale(1), *on.put(x), on.scale(0), *y)
    wide, slopes = x.astype(np.float64), dy.astype(np.float64)
    low = wide - wide.max(axes, keepdims=True)
    logs = low - np.log(np.exp(low).sum(axes, keepdims=True))
    found = on.get(y, shape)
    close(found, logs if log else np.exp(logs), dtype, 200 if log else 20)
    library.call("cudnnSoftmaxBackward", None, algorithm, mode, on.scale(1), *y, *on.put(dy), on.scale(0), *dx)
    p = np.exp(logs)
    wanted = (
        slopes - p * slopes.sum(axes, keepdims=True) if log else p * (slopes - (slopes * p).sum(axes, keepdims=True))
    )
    close(on.get(dx, shape), wanted, dtype, 200)


def test_tensors_of_other_layouts_and_fills(library):
    values = numbers((2, 3, 4, 5), "float32")
    planes, last = (Tensors(library, "float32", last) for last in (False, True))
    to = last.put(np.zeros(values.shape, np.float32))
    library.call("cudnnTransformTensor", None, last.scale(2), *planes.put(values), last.scale(0), *to)
    assert (last.get(to, values.shape) == 2 * values).all()
    library.call("cudnnScaleTensor", None, *to, last.scale(0.5))
    assert (last.get(to, values.shape) == values).all()
    library.call("cudnnSetTensor", None, *to, last.scale(3))
    assert (last.get(to, values.shape) == 3).all()


def test_shapes_that_do_not_fit_are_refused_as_cudnn_does(library):
    on = Tensors(library, "float32")
    how = library.descriptor("Pooling", 0, 0, 2, *(ints([one] * 2) for one in (2, 0, 2)))
    x, y = on.put(np.zeros((2, 3, 6, 6), np.float32)), on.put(np.zeros((2, 4, 3, 3), np.float32))
    assert library.status("cudnnPoolingForward", None, how, on.scale(1), *x, on.scale(0), *y) == 3
    assert library.status("cudnnSetTensorNdDescriptor", None, 0, 4, ints([1] * 4), ints([1] * 4)) == 3


def test_an_auto_tuner_is_spared_algorithms_that_are_all_the_same(library):
    size, nothing = ctypes.c_size_t(7), [ctypes.c_void_p()] * 5
    statuses = [
        library.status(f"cudnnGetConvolution{what}WorkspaceSize", *nothing, algorithm, ctypes.byref(size))
        for what in ("Forward", "BackwardData", "BackwardFilter")
        for algorithm in (0, 1, 2, 6)
    ]
    assert (statuses, size.value) == ([0, 0, 9, 9] * 3, 0)
