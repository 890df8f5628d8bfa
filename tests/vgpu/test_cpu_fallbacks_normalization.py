"""CPU fallbacks of cuDNN's batch normalization against NumPy in double precision."""

import ctypes

import numpy as np
import pytest
from device_tensors import TYPES, Tensors, assert_close, numbers, sum_type
from vendor_library import tolerance


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("ops", [None, 0, 1, 2])
def test_batch_normalization(library, dtype, last, mode, ops):
    """The result in training, its gradient (against differences) and the running means are those of NumPy.

    last: channels last; mode: cudnnBatchNormMode_t; ops: cudnnBatchNormOps_t, or None for the calls without Ex.
    """
    tensors, shape = Tensors(library, dtype, last), (4, 3, 2, 5)
    axes, parameter_shape = ((0,), (1, 3, 2, 5)) if mode == 0 else ((0, 2, 3), (1, 3, 1, 1))
    x, z, dy = (numbers(shape, dtype, k) for k in range(3))
    parameter_type = sum_type(dtype)
    scale, bias, mean, variance = (
        numbers(parameter_shape, parameter_type, k) + (2 if k in (0, 3) else 0) for k in range(4)
    )
    x_tensor, z_tensor, y = tensors.put(x), tensors.put(z), tensors.put(np.zeros(shape, dtype))
    parameter_descriptor, scale_address = tensors.put(scale, parameter_type)
    bias_address, mean_address, variance_address = (
        tensors.put(values, parameter_type)[1] for values in (bias, mean, variance)
    )
    saved = [tensors.put(np.zeros(parameter_shape, parameter_type), parameter_type)[1] for _ in range(2)]
    relu = library.descriptor("Activation", 1, 0, ctypes.c_double(0), nd=False)
    one, zero, epsilon = tensors.scale(1), tensors.scale(0), ctypes.c_double(0.01)
    spaces = (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    tail = (
        parameter_descriptor,
        scale_address,
        bias_address,
        ctypes.c_double(0.25),
        mean_address,
        variance_address,
        epsilon,
        *saved,
    )
    if ops is None:
        library.call("cudnnBatchNormalizationForwardTraining", None, mode, one, zero, *x_tensor, *y, *tail)
    else:
        name = "cudnnBatchNormalizationForwardTrainingEx"
        library.call(name, None, mode, ops, one, zero, *x_tensor, *z_tensor, *y, *tail, relu, *spaces)

    def normalize(x, scale, bias, z):
        normalized = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 0.01) * scale + bias
        return np.maximum(normalized + (z if ops == 2 else 0), 0 if ops else -np.inf)

    exact = [a.astype(np.float64) for a in (x, scale, bias, z)]
    assert_close(tensors.get(y, shape), normalize(*exact), dtype, 20)
    size = x.size / scale.size
    new_mean = 0.75 * mean + 0.25 * exact[0].mean(axes, keepdims=True)
    assert_close(tensors.get((0, mean_address), parameter_shape, parameter_type), new_mean, parameter_type, 20)
    new_variance = 0.75 * variance + 0.25 * exact[0].var(axes, keepdims=True) * size / (size - 1)
    assert_close(tensors.get((0, variance_address), parameter_shape, parameter_type), new_variance, parameter_type, 20)

    dx, dz = tensors.put(np.zeros(shape, dtype)), tensors.put(np.zeros(shape, dtype))
    dscale, dbias = (tensors.put(np.zeros(parameter_shape, parameter_type), parameter_type)[1] for _ in range(2))
    dy_tensor, tail = tensors.put(dy), (dscale, dbias, epsilon, *saved)
    if ops is None:
        library.call(
            "cudnnBatchNormalizationBackward", None, mode, one, zero, one, zero, *x_tensor, *dy_tensor, *dx,
            parameter_descriptor, scale_address, *tail,
        )  # fmt: skip
    else:
        library.call(
            "cudnnBatchNormalizationBackwardEx", None, mode, ops, one, zero, one, zero, *x_tensor, *y, *dy_tensor,
            *dz, *dx, parameter_descriptor, scale_address, bias_address, *tail, relu, *spaces,
        )  # fmt: skip
    # A rectified sum has no slope at zero; differences of doubles have about six correct digits.
    slopes = dy.astype(np.float64) * ((normalize(*exact) > 0) if ops else 1)
    if ops == 2:
        assert_close(tensors.get(dz, shape), slopes, dtype, 4)
    expected = np.zeros(shape)
    for k in np.ndindex(shape):
        step = np.zeros(shape)
        step[k] = 1e-5
        linear = [exact[1], exact[2], 0]
        up, down = (x for x in (exact[0] + step, exact[0] - step))
        expected[k] = (
            slopes * (normalize_linearly(up, axes, *linear) - normalize_linearly(down, axes, *linear))
        ).sum() / 2e-5
    assert np.abs(tensors.get(dx, shape) - expected).max() < max(1e-4, 20 * tolerance(dtype))
    normalized_x = normalize_linearly(exact[0], axes, 1, 0, 0)
    assert_close(
        tensors.get((0, dscale), parameter_shape, parameter_type),
        (slopes * normalized_x).sum(axes, keepdims=True),
        parameter_type,
        400,
    )
    assert_close(
        tensors.get((0, dbias), parameter_shape, parameter_type), slopes.sum(axes, keepdims=True), parameter_type, 200
    )


def normalize_linearly(x, axes, scale, bias, z):
    """Return the batch normalization of x in double precision."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 0.01) * scale + bias + z


@pytest.mark.parametrize("mode", [0, 1])
def test_batch_normalization_of_one_sample(library, mode):
    tensors, shape = Tensors(library, "float32"), (4, 3, 2, 5)
    parameter_shape = (1, 3, 1, 1) if mode else (1, 3, 2, 5)
    x = numbers(shape, "float32")
    scale, bias, mean, variance = (numbers(parameter_shape, "float32", k) + (2 if k == 3 else 0) for k in range(4))
    y = tensors.put(np.zeros(shape, np.float32))
    (parameter_descriptor, scale_address), *other_parameters = (
        tensors.put(values) for values in (scale, bias, mean, variance)
    )
    addresses = [address for _, address in other_parameters]
    library.call(
        "cudnnBatchNormalizationForwardInference", None, mode, tensors.scale(1), tensors.scale(0), *tensors.put(x),
        *y, parameter_descriptor, scale_address, *addresses, ctypes.c_double(0.01),
    )  # fmt: skip
    assert_close(tensors.get(y, shape), (x - mean) / np.sqrt(variance + 0.01) * scale + bias, "float32", 20)
