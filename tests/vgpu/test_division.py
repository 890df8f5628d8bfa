"""div.approx and div.full, which differ from the true quotient: PTX ISA, "Floating Point Instructions: div"."""

import numpy as np
import pytest
from exact import result
from operands import assert_same, operand_tuples
from virtual_device import kernel

LARGE = 0x7E800000  # 2^126


def scale_by(x, factor):
    with np.errstate(all="ignore"):
        return (x.view(np.float32) * np.float32(factor)).view(np.uint32)


def flush(x, ftz):
    return np.where((x & 0x7F800000 == 0) & bool(ftz), x & 0x80000000, x).astype(np.uint32)


@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("how", ["approx", "full"])
def test_division(device, how, ftz):
    """div is a * (1 / b), scaled if b is subnormal, or above 2^126 for div.full, where 1 / b would be flushed."""
    x, y = operand_tuples("f32", 2, 500)
    far = np.array([LARGE - 1, LARGE, LARGE + 1, LARGE + (1 << 23), 0x7F7FFFFF, 0x7F800000], np.uint32)
    near = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000], np.uint32)
    signs = np.array([0, 1 << 31], np.uint32)
    a, b = (grid.ravel() for grid in np.meshgrid(np.add.outer(signs, near), np.add.outer(signs, far)))
    x, y = np.concatenate([x, a]), np.concatenate([y, b])
    magnitude = y & 0x7FFFFFFF
    scale = np.where((magnitude < 0x800000) & (not ftz), 2.0**24, 1)
    scale = np.where((magnitude > LARGE) & (how == "full"), 0.25, scale)
    p, q = flush(scale_by(flush(x, ftz), scale), ftz), scale_by(y, scale)
    inverse = device.evaluate("rcp.approx.ftz.f32 %d, %x;", [np.uint32], q)
    expected = [
        result("f32", "mul", "rn", [a, b], ftz=bool(ftz)) for a, b in zip(inverse.tolist(), p.tolist(), strict=True)
    ]
    assert_same(device.evaluate(f"div.{how}{ftz}.f32 %d, %x, %y;", [np.uint32], x, y), expected, x, y)


def test_the_error_of_a_quotient_is_at_most_2_ulp(device):
    """The error is at most 2 units in the last place, as PTX documents."""
    x, y = (np.random.default_rng(n).uniform(0.01, 100, 4000).astype(np.float32) for n in range(2))
    for modifier in ("approx", "full"):
        quotients = device.evaluate(
            f"div.{modifier}.f32 %d, %x, %y;", [np.uint32], x.view(np.uint32), y.view(np.uint32)
        )
        assert (np.abs(quotients.astype(np.int64) - (x / y).view(np.uint32)) <= 2).all()


REFUSED = """fma.f32 %f1,%f2,%f3,%f4;div.f32 %f1,%f2,%f3;div.f64 %d1,%d2,%d3;div.approx.f64 %d1,%d2,%d3;sqrt.f32 %f1,%f2
div.full.f64 %d1,%d2,%d3;rcp.f32 %f1,%f2;rcp.approx.f64 %d1,%d2;rcp.full.f32 %f1,%f2;ex2.f32 %f1,%f2
ex2.approx.f64 %d1,%d2
add.ftz.f64 %d1,%d2,%d3;min.NaN.f64 %d1,%d2,%d3;rsqrt.f32 %f1,%f2;min.f32 %f1,%f2,%f3,%f4;neg.f32 %f1,%f2,%f3
sin.f32 %f1,%f2
ex2.approx.ftz.f16 %h1,%h2;ex2.approx.bf16 %h1,%h2;fma.f16 %h1,%h2,%h3,%h4;add.f16 %h1,%h2;add.f32 %f1,%f2"""


def test_forms_that_ptxas_refuses(device):
    """A rounding modifier has no default, and an additional operand is an error."""
    registers = ".reg .f32 %f<5>; .reg .f64 %d<5>;"
    accepted = []
    for text in REFUSED.replace("\n", ";").split(";"):
        code, module = device.load(kernel(f"{registers}{text};", ["p0"]))
        if code == 0 and device.function(module)[0] == 0:
            accepted.append(text)
    assert not accepted
