"""cuDNN's batch normalisation as its stand-in computes it, against NumPy in double precision."""

import ctypes

import numpy as np
import pytest
from closed_library import tolerance
from stand_in_tensors import TYPES, Tensors, close, numbers, sums


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("ops", [None, 0, 1, 2])
def test_batch_normalisation(library, dtype, last, mode, ops):
    """In training, its gradient (against differences), and with running means."""
    on, shape = Tensors(library, dtype, last), (4, 3, 2, 5)
    axes, kept = ((0,), (1, 3, 2, 5)) if mode == 0 else ((0, 2, 3), (1, 3, 1, 1))
    x, z, dy = (numbers(shape, dtype, k) for k in range(3))
    own = sums(dtype)
    scale, bias, mean, variance = (numbers(kept, own, k) + (2 if k in (0, 3) else 0) for k in range(4))
    at_x, at_z, y = on.put(x), on.put(z), on.put(np.zeros(shape, dtype))
    of_p, at_scale = on.put(scale, own)
    at_bias, at_mean, at_variance = (on.put(one, own)[1] for one in (bias, mean, variance))
    saved = [on.put(np.zeros(kept, own), own)[1] for _ in range(2)]
    relu = library.descriptor("Activation", 1, 0, ctypes.c_double(0), nd=False)
    one, none, epsilon = on.scale(1), on.scale(0), ctypes.c_double(0.01)
    spaces = (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))
    tail = (of_p, at_scale, at_bias, ctypes.c_double(0.25), at_mean, at_variance, epsilon, *saved)
    if ops is None:
        library.call("cudnnBatchNormalizationForwardTraining", None, mode, one, none, *at_x, *y, *tail)
    else:
        name = "cudnnBatchNormalizationForwardTrainingEx"
        library.call(name, None, mode, ops, one, none, *at_x, *at_z, *y, *tail, relu, *spaces)

    def normal(x, scale, bias, z):
        made = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 0.01) * scale + bias
        return np.maximum(made + (z if ops == 2 else 0), 0 if ops else -np.inf)

    wide = [a.astype(np.float64) for a in (x, scale, bias, z)]
    close(on.get(y, shape), normal(*wide), dtype, 20)
    size = x.size / scale.size
    new_mean = 0.75 * mean + 0.25 * wide[0].mean(axes, keepdims=True)
    close(on.get((0, at_mean), kept, own), new_mean, own, 20)
    new_variance = 0.75 * variance + 0.25 * wide[0].var(axes, keepdims=True) * size / (size - 1)
    close(on.get((0, at_variance), kept, own), new_variance, own, 20)

    dx, dz = on.put(np.zeros(shape, dtype)), on.put(np.zeros(shape, dtype))
    dscale, dbias = (on.put(np.zeros(kept, own), own)[1] for _ in range(2))
    given, tail = on.put(dy), (dscale, dbias, epsilon, *saved)
    if ops is None:
        library.call(
            "cudnnBatchNormalizationBackward",
            None,
            mode,
            one,
            none,
            one,
            none,
            *at_x,
            *given,
            *dx,
            of_p,
            at_scale,
            *tail,
        )
    else:
        library.call(
            "cudnnBatchNormalizationBackwardEx", None, mode, ops, one, none, one, none, *at_x, *y, *given, *dz, *dx,
            of_p, at_scale, at_bias, *tail, relu, *spaces,
        )  # fmt: skip
    # Where the sum is at zero it has no slope; differences of doubles are good to some six digits.
    slopes = dy.astype(np.float64) * ((normal(*wide) > 0) if ops else 1)
    if ops == 2:
        close(on.get(dz, shape), slopes, dtype, 4)
    wanted = np.zeros(shape)
    for k in np.ndindex(shape):
        step = np.zeros(shape)
        step[k] = 1e-5
        linear = [wide[1], wide[2], 0]
        up, down = (x for x in (wide[0] + step, wide[0] - step))
        wanted[k] = (slopes * (linear_normal(up, axes, *linear) - linear_normal(down, axes, *linear))).sum() / 2e-5
    assert np.abs(on.get(dx, shape) - wanted).max() < max(1e-4, 20 * tolerance(dtype))
    normed = linear_normal(wide[0], axes, 1, 0, 0)
    close(on.get((0, dscale), kept, own), (slopes * normed).sum(axes, keepdims=True), own, 400)
    close(on.get((0, dbias), kept, own), slopes.sum(axes, keepdims=True), own, 200)


def linear_normal(x, axes, scale, bias, z):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 0.01) * scale + bias + z


@pytest.mark.parametrize("mode", [0, 1])
def test_batch_normalisation_of_one_sample(library, mode):
    on, shape = Tensors(library, "float32"), (4, 3, 2, 5)
    kept = (1, 3, 1, 1) if mode else (1, 3, 2, 5)
    x = numbers(shape, "float32")
    scale, bias, mean, variance = (numbers(kept, "float32", k) + (2 if k == 3 else 0) for k in range(4))
    y = on.put(np.zeros(shape, np.float32))
    (of_p, at_scale), *others = (on.put(one) for one in (scale, bias, mean, variance))
    rest = [at for _, at in others]
    library.call(
        "cudnnBatchNormalizationForwardInference", None, mode, on.scale(1), on.scale(0), *on.put(x), *y, of_p, at_scale,
        *rest, ctypes.c_double(0.01),
    )  # fmt: skip
    close(on.get(y, shape), (x - mean) / np.sqrt(variance + 0.01) * scale + bias, "float32", 20)
