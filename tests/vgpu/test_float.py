"""Single and double precision in every rounding, against exact rational arithmetic."""

import math
import shutil
import subprocess

import numpy as np
import pytest
from exact import Real, canonical, joined_signs, result, smaller  # smaller, joined_signs: maxima if `greater`
from operands import assert_same, operand_tuples, unsigned

ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}


def check(device, text, type, reference, columns):
    """Assert the results; NaNs of double precision are compared as NaNs, as PTX does not specify their bits."""
    names = ", ".join(f"%{name}" for name in "xyz"[: len(columns)])
    results = device.evaluate(f"{text}.{type} %d, {names};", [unsigned(type)], *columns)
    if type == "f64":
        results = np.array(canonical(type, results.tolist()), np.uint64)
    expected = [reference(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    assert_same(results, expected, *columns)


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("op", ARITY)
def test_arithmetic_in_each_rounding(device, op, mode, type):
    columns = operand_tuples(type, ARITY[op], 1500)
    check(device, f"{op}.{mode}", type, lambda *xs: result(type, op, mode, xs), columns)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("op", ARITY)
def test_flushed_and_held(device, op, mode):
    columns = operand_tuples("f32", ARITY[op], 800, seed=1)
    check(device, f"{op}.{mode}.ftz", "f32", lambda *xs: result("f32", op, mode, xs, ftz=True), columns)
    if op in ("add", "sub", "mul", "fma"):
        check(device, f"{op}.{mode}.sat", "f32", lambda *xs: result("f32", op, mode, xs, sat=True), columns)
        check(
            device, f"{op}.{mode}.ftz.sat", "f32", lambda *xs: result("f32", op, mode, xs, ftz=True, sat=True), columns
        )


def test_fma(device):
    columns = operand_tuples("f32", 3, 800, seed=2)
    check(device, "mad.rn", "f32", lambda *xs: result("f32", "fma", "rn", xs), columns)
    check(device, "mad.rm", "f64", lambda *xs: result("f64", "fma", "rm", xs), operand_tuples("f64", 3, 800, seed=2))


@pytest.mark.parametrize("op", ["min", "max"])
def test_xorsign_abs(device, op):
    columns, flush = operand_tuples("f32", 2), Real("f32").flushed
    for nan in (False, True):
        options = {"greater": op == "max", "nan": nan}
        text = f"{op}{'.NaN' if nan else ''}.xorsign.abs"
        check(device, text, "f32", lambda a, b, options=options: joined_signs("f32", a, b, **options), columns)
        text = text.replace(op, f"{op}.ftz", 1)
        check(
            device,
            text,
            "f32",
            lambda a, b, options=options: joined_signs("f32", flush(a), flush(b), **options),
            columns,
        )


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_min_and_max(device, type):
    x, y = operand_tuples(type, 2)
    flush = Real(type).flushed
    for op, greater in (("min", False), ("max", True)):
        check(device, op, type, lambda a, b, g=greater: smaller(type, a, b, g), [x, y])
        if type == "f32":
            check(device, f"{op}.ftz", type, lambda a, b, g=greater: smaller(type, flush(a), flush(b), g), [x, y])
            check(device, f"{op}.NaN", type, lambda a, b, g=greater: smaller(type, a, b, g, nan=True), [x, y])


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_neg_abs_and_copysign(device, type):
    (x,) = operand_tuples(type, 1)
    real = Real(type)
    x = x[[not real.is_nan(bits) for bits in x.tolist()]]  # the result for a NaN is unspecified
    check(device, "neg", type, lambda a: a ^ real.sign, [x])
    check(device, "abs", type, lambda a: a & ~real.sign, [x])
    if type == "f32":
        check(device, "neg.ftz", type, lambda a: real.flushed(a) ^ real.sign, [x])
        check(device, "abs.ftz", type, lambda a: real.flushed(a) & ~real.sign, [x])
    x, y = operand_tuples(type, 2)
    results = device.evaluate(f"copysign.{type} %d, %x, %y;", [unsigned(type)], x, y)
    sign = unsigned(type)(real.sign)
    assert_same(results, (y & ~sign) | (x & sign), x, y)


def test_absolute_value_of_a_double_nan_is_that_nan_made_quiet(device):
    (x,) = operand_tuples("f64", 1)
    x = x[[Real("f64").is_nan(bits) for bits in x.tolist()]]
    results = device.evaluate("abs.f64 %d, %x;", [np.uint64], x)
    assert_same(results, x | np.uint64(1 << 51), x)


def test_results_that_rounding_makes_normal_are_flushed(device):
    """The rows are results of an H100."""
    normal, under_one, over_one, sign = 0x800000, 0x3F7FFFFF, 0x3F800001, 1 << 31
    rows = {
        "mul.rn.ftz": (normal, under_one, 0), "mul.rp.ftz": (normal, under_one, 0),
        "mul.rn": (normal, under_one, normal), "mul.rm.ftz": (normal, under_one | sign, sign),
        "div.rp.ftz": (normal, over_one, 0), "div.rm.ftz": (normal, over_one | sign, sign),
        "div.rp": (normal, over_one, normal),
    }  # fmt: skip
    for op, (x, y, expected) in rows.items():
        results = device.evaluate(
            f"{op}.f32 %d, %x, %y;", [np.uint32], *(np.array([bits], np.uint32) for bits in (x, y))
        )
        assert results.tolist() == [expected], op


KINDS = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda v: ~np.isnan(v),
    "notanumber": np.isnan,
    "subnormal": lambda v: (v != 0) & (np.abs(v) < np.finfo(v.dtype).tiny),
    "normal": lambda v: np.isfinite(v) & ((v == 0) | (np.abs(v) >= np.finfo(v.dtype).tiny)),
}


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_testp(device, kind, type):
    (x,) = operand_tuples(type, 1)
    results = device.evaluate(f"testp.{kind}.{type} %p0, %x; selp.u32 %d, 1, 0, %p0;", [np.uint32], x)
    assert_same(results, KINDS[kind](x.view(type.replace("f", "float"))).astype(np.uint32), x)


def without_exceptions(function):
    """Return the function with infinity instead of OverflowError, and NaN instead of ValueError."""

    def of(value):
        try:
            return function(value)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return of


# instruction: the function, the largest relative and absolute error that PTX documents, the range of operands
APPROXIMATE = {
    "rcp.approx": (lambda v: 1 / v, 2.0**-23, 0, (-1e37, 1e37)),
    "sqrt.approx": (math.sqrt, 2.0**-23, 0, (0, 1e38)),
    "rsqrt.approx": (lambda v: 1 / math.sqrt(v), 2.0**-22.9, 0, (0, 1e38)),
    "ex2.approx": (lambda v: 2.0**v, 2.0**-22, 0, (-126, 127)),
    "lg2.approx": (math.log2, 2.0**-22, 2.0**-22, (0, 1e38)),
    "sin.approx": (math.sin, 0, 2.0**-20.5, (-math.pi, math.pi)),
    "cos.approx": (math.cos, 0, 2.0**-20.5, (-math.pi, math.pi)),
    "tanh.approx": (math.tanh, 2.0**-11, 0, (-100, 100)),
}


@pytest.mark.parametrize("op", APPROXIMATE)
def test_approximate(device, op):
    function, relative, absolute, (low, high) = APPROXIMATE[op]
    (bits,) = operand_tuples("f32", 1, 6000)
    values = np.concatenate(
        [bits.view(np.float32), np.random.default_rng(0).uniform(low, high, 4000).astype(np.float32)]
    )
    values = values[(values > low) & (values < high) & (np.abs(values) > 1e-37)]
    results = device.evaluate(f"{op}.f32 %d, %x;", [np.uint32], values.view(np.uint32)).view(np.float32).astype(float)
    expected = np.array([without_exceptions(function)(v) for v in values.tolist()])
    within = np.abs(results - expected) <= np.maximum(relative * np.abs(expected) * 1.0001, absolute)
    assert within.all(), (op, values[~within][:3], results[~within][:3], expected[~within][:3])


@pytest.mark.skipif(not shutil.which("nm"), reason="no nm")
def test_no_last_bits_are_the_c_librarys(device):
    """The C library's functions give other last bits on other machines."""
    symbols = subprocess.check_output(["nm", "-D", "--undefined-only", device.library], text=True)
    names = {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
    assert "malloc" in names or "memcpy" in names
    assert names.isdisjoint(
        name + kind for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "pow") for kind in ("", "f")
    )


LIMITS = {
    "rcp.approx": "-inf:-0 -0:-inf 0:inf inf:0 nan:nan",
    "sqrt.approx": "-inf:nan -1:nan -0:-0 0:0 inf:inf nan:nan",
    "rsqrt.approx": "-inf:nan -1:nan -0:-inf 0:inf inf:0 nan:nan",
    "ex2.approx": "-inf:0 -0:1 0:1 inf:inf nan:nan",
    "lg2.approx": "-inf:nan -1:nan -0:-inf 0:-inf inf:inf nan:nan",
    "sin.approx": "-inf:nan -0:-0 0:0 inf:nan nan:nan",
    "cos.approx": "-inf:nan -0:1 0:1 inf:nan nan:nan",
    "tanh.approx": "-inf:-1 -0:-0 0:0 inf:1 nan:nan",
}


@pytest.mark.parametrize("op", LIMITS)
def test_approximate_at_the_limits(device, op):
    pairs = [pair.split(":") for pair in LIMITS[op].split()]
    x, expected = (np.array([float(pair[k]) for pair in pairs], np.float32).view(np.uint32) for k in (0, 1))
    results = device.evaluate(f"{op}.f32 %d, %x;", [np.uint32], x)
    assert_same(results, np.array(canonical("f32", expected.tolist()), np.uint32), x)


@pytest.mark.parametrize("op", ["rcp", "rsqrt"])
def test_gross_approximations_of_doubles(device, op):
    """Only the upper 32 bits of operand and result count, even of a NaN; subnormals are flushed."""
    (x,) = operand_tuples("f64", 1)
    x &= ~np.uint64(0xFFFFFFFF)
    results = device.evaluate(f"{op}.approx.ftz.f64 %d, %x;", [np.uint64], x)
    assert not (results & np.uint64(0xFFFFFFFF))[~np.isnan(results.view(float))].any()
    upper = np.array([Real("f64").flushed(bits) for bits in x.tolist()], np.uint64).view(float)
    with np.errstate(all="ignore"):
        expected = 1 / upper if op == "rcp" else 1 / np.sqrt(upper)
        close = (np.abs(results.view(float) / expected - 1) < 2.0**-19) | (results.view(float) == expected)
        tiny = (np.abs(expected) < np.finfo(float).tiny) & (results.view(float) == 0)
    assert (close | tiny | (np.isnan(expected) & np.isnan(results.view(float)))).all()


def test_a_modifier_that_is_not_known_is_refused(device):
    for text in ("add.rn.xorsign.f32 %d, %x, %x;", "max.xorsign.f32 %d, %x, %x;", "add.bogus.u32 %d, %x, %x;"):
        with pytest.raises(AssertionError, match="error 209"):
            device.evaluate(text, [np.uint32], np.zeros(4, np.uint32))


def test_rsqrt_of_doubles_keeps_subnormals(device):
    """rsqrt.approx.f64 without ftz is accurate for subnormal operands, too."""
    (x,) = operand_tuples("f64", 1)
    with np.errstate(all="ignore"):
        expected = 1 / np.sqrt(x.view(float))
        results = device.evaluate("rsqrt.approx.f64 %d, %x;", [np.uint64], x).view(float)
        assert (
            (results == expected)
            | (np.abs(results / expected - 1) < 2.0**-51)
            | (np.isnan(results) & np.isnan(expected))
        ).all()
