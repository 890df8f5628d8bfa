"""f16 and bf16, single and in pairs, against exact rational arithmetic."""

import math

import numpy as np
import pytest
from exact import Real, joined_signs, result, smaller  # smaller, joined_signs: maxima if `greater`
from operands import assert_same, operand_tuples

ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
TYPES = ["f16", "bf16"]


def check(device, text, type, reference, columns):
    """Assert the results in single registers, and in pairs."""
    names = ", ".join(f"%{name}" for name in "xyz"[: len(columns)])
    expected = np.array(
        [reference(*row) for row in zip(*(column.tolist() for column in columns), strict=True)], np.uint16
    )
    assert_same(device.evaluate(f"{text}.{type} %d, {names};", [np.uint16], *columns), expected, *columns)
    pairs = [np.ascontiguousarray(column[: len(column) // 2 * 2]).view(np.uint32) for column in columns]
    results = device.evaluate(f"{text}.{type}x2 %d, {names};", [np.uint32], *pairs)
    assert_same(results, expected[: len(expected) // 2 * 2].view(np.uint32), *pairs)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", ARITY)
def test_arithmetic_in_each_rounding(device, op, type):
    columns = operand_tuples(type, ARITY[op], 6000)
    check(device, f"{op}.rn" if op == "fma" else op, type, lambda *xs: result(type, op, "rn", xs), columns)


@pytest.mark.parametrize("op", ARITY)
def test_flushed_and_held(device, op):
    columns = operand_tuples("f16", ARITY[op], 3000, seed=1)
    text = f"{op}.rn" if op == "fma" else op
    check(device, f"{text}.ftz", "f16", lambda *xs: result("f16", op, "rn", xs, ftz=True), columns)
    check(device, f"{text}.sat", "f16", lambda *xs: result("f16", op, "rn", xs, sat=True), columns)
    check(device, f"{text}.ftz.sat", "f16", lambda *xs: result("f16", op, "rn", xs, ftz=True, sat=True), columns)


@pytest.mark.parametrize("type", TYPES)
def test_relu_of_fma(device, type):
    columns = operand_tuples(type, 3, 3000, seed=2)
    check(device, "fma.rn.relu", type, lambda *xs: result(type, "fma", "rn", xs, relu=True), columns)


def test_fma_rounds_once(device):
    """The addend is far below the product's last place, and decides ties."""
    rng = np.random.default_rng(5)
    for type in TYPES:
        fraction = Real(type).fraction
        x = (rng.integers(0, 1 << fraction, 20000) | Real(type).bias << fraction).astype(np.uint16)
        y = (rng.integers(0, 1 << fraction, 20000) | Real(type).bias << fraction).astype(np.uint16)
        z = (rng.integers(0, 1 << fraction * 2, 20000) | rng.integers(0, 2, 20000) << 15).astype(np.uint16)
        check(device, "fma.rn", type, lambda *xs, t=type: result(t, "fma", "rn", xs), [x, y, z])


@pytest.mark.parametrize("type", TYPES)
def test_min_and_max(device, type):
    x, y = operand_tuples(type, 2)
    flush = Real(type).flushed
    for op, greater in (("min", False), ("max", True)):
        check(device, op, type, lambda a, b, g=greater: smaller(type, a, b, g), [x, y])
        check(device, f"{op}.NaN", type, lambda a, b, g=greater: smaller(type, a, b, g, nan=True), [x, y])
        if type == "f16":
            check(device, f"{op}.ftz", type, lambda a, b, g=greater: smaller(type, flush(a), flush(b), g), [x, y])


@pytest.mark.parametrize("type", TYPES)
def test_xorsign_abs(device, type):
    x, y = operand_tuples(type, 2)
    flush = Real(type).flushed
    for op, greater in (("min", False), ("max", True)):
        for nan in (False, True):
            text = f"{op}{'.NaN' if nan else ''}.xorsign.abs"
            check(device, text, type, lambda a, b, g=greater, n=nan: joined_signs(type, a, b, greater=g, nan=n), [x, y])
        if type == "f16":
            text = f"{op}.ftz.xorsign.abs"
            check(device, text, type, lambda a, b, g=greater: joined_signs(type, flush(a), flush(b), greater=g), [x, y])


@pytest.mark.parametrize("type", TYPES)
def test_neg_and_abs(device, type):
    x = np.arange(1 << 16, dtype=np.uint16)
    real = Real(type)
    x = x[[not real.is_nan(bits) for bits in x.tolist()]]  # the result for a NaN is unspecified
    check(device, "neg", type, lambda a: a ^ real.sign, [x])
    check(device, "abs", type, lambda a: a & ~real.sign, [x])
    if type == "f16":
        check(device, "neg.ftz", type, lambda a: real.flushed(a) ^ real.sign, [x])
        check(device, "abs.ftz", type, lambda a: real.flushed(a) & ~real.sign, [x])


@pytest.mark.parametrize("type", TYPES)
def test_every_value_goes_through_single_precision(device, type):
    """A value survives the conversion to f32 and back, but every NaN becomes the canonical one."""
    x = np.arange(1 << 16, dtype=np.uint16)
    wide, round_trip = device.evaluate(f"cvt.f32.{type} %d, %x; cvt.rn.{type}.f32 %e, %d;", [np.uint32, np.uint16], x)
    real = Real(type)
    assert_same(round_trip, np.array([real.nan if real.is_nan(bits) else bits for bits in x.tolist()], np.uint16), x)
    host = x.view(np.float16).astype(np.float32) if type == "f16" else (x.astype(np.uint32) << 16).view(np.float32)
    if type == "f16":  # the conversion from bf16 is a shift, which keeps NaNs
        host = np.where(np.isnan(host), np.uint32(0x7FFFFFFF).view(np.float32), host)
    assert_same(wide, host.view(np.uint32), x)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", ["ex2.approx", "tanh.approx"])
def test_approximate(device, op, type):
    if (op, type) == ("ex2.approx", "bf16"):
        op = "ex2.approx.ftz"
    x = np.arange(1 << 16, dtype=np.uint16)
    wide, results = device.evaluate(
        f"cvt.f32.{type} %d, %x; {op}.{type} %h0, %x; cvt.f32.{type} %e, %h0;", [np.uint32] * 2, x
    )
    with np.errstate(invalid="ignore"):  # NaNs
        wide, results = wide.view(np.float32).astype(float), results.view(np.float32).astype(float)
    within = (np.abs(wide) < 15) & (np.abs(wide) > 1e-3)
    expected = np.array([(math.tanh if op[0] == "t" else math.exp2)(v) for v in wide[within].tolist()])
    relative = {"f16": 2.0**-9.9, "bf16": 2.0**-7}[type]
    absolute = {"f16": 2.0**-24, "bf16": 0}[type]  # of subnormal results
    assert (np.abs(results[within] - expected) <= np.maximum(relative * np.abs(expected), absolute)).all()
