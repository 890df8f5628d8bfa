"""cvt between all pairs of types, in every rounding, with sat and ftz, into and from wider registers."""

from fractions import Fraction

import numpy as np
import pytest
from exact import INFINITE, NOT_A_NUMBER, Real, canonical
from operands import FORMATS, UNSIGNED, assert_same, operand_tuples, signed, size, unsigned, wrap

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = list(FORMATS)
TO_INTEGER = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def limits(type):
    """Return the least and the greatest value of an integer type."""
    bits = 8 * size(type)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def clamp(value, type):
    """Return the nearest value of the type."""
    low, high = limits(type)
    return min(max(value, low), high)


def round_to_integer(value, mode):
    """Round a Fraction to an integer."""
    floor = value.numerator // value.denominator
    remainder = value - floor
    if mode == "rn":
        return floor + (remainder > Fraction(1, 2) or (remainder == Fraction(1, 2) and floor & 1))
    return floor + (remainder > 0 and (mode == "rp" or (mode == "rz" and value < 0)))


def integer_of(bits, source, into, mode, ftz=False):
    """Return the integer that cvt gives for the bits of a float."""
    real = Real(source)
    negative, magnitude = real.value(real.flushed(bits) if ftz else bits)
    if magnitude == NOT_A_NUMBER:
        wide = source == "f64" or size(into) == 8
        return 1 << 8 * size(into) - 1 if wide else 0
    if magnitude == INFINITE:
        return limits(into)[not negative]
    return clamp(round_to_integer(-magnitude if negative else magnitude, mode), into)


def kept_nan(bits, source, into):
    """Return the NaN that a NaN of double precision or bf16 becomes: its sign and what fits of its payload."""
    real, result = Real(source), Real(into)
    sign = result.sign if bits & real.sign else 0
    shift = real.fraction - result.fraction
    payload = (bits & (1 << real.fraction) - 1) >> shift if shift > 0 else (bits & (1 << real.fraction) - 1) << -shift
    quiet = 1 << result.fraction - 1 if source == "f64" else 0
    return sign | result.infinite | payload | quiet


def float_of(value, into, mode, sat=False):
    """Return the bits of (negative, magnitude)."""
    real = Real(into)
    result = real.bits(*value, mode)
    if sat:
        return 0 if result & real.sign or real.is_nan(result) else min(result, real.bias << real.fraction)
    return result


def convert(bits, source, into, mode):
    """Return the bits that cvt gives for the bits of a float."""
    real = Real(source)
    keeps = (source == "f64" or (source, into) == ("bf16", "f32")) and real.is_nan(bits)
    return kept_nan(bits, source, into) if keeps else float_of(real.value(bits), into, mode)


def operands(type, count=1500):
    """Return operands of the type as an array of bits."""
    if type in FORMATS:
        return operand_tuples(type, 1, count)[0]
    return operand_tuples(type, 1, count)[0]


def check(device, text, into, source, reference, x=None):
    """Compare cvt with the reference function for all operands."""
    x = operands(source) if x is None else x
    result = device.evaluate(f"cvt.{text}{into}.{source} %d, %x;", [unsigned(into)], x)
    if into == "f64":
        result = np.array(canonical("f64", result.tolist()), np.uint64)
    assert_same(result, np.array([wrap(reference(bits), 8 * size(into)) for bits in x.tolist()], unsigned(into)), x)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("into", INTEGERS)
def test_integers(device, into, source):
    def number(bits):
        return signed(bits, 8 * size(source)) if source[0] == "s" else bits

    check(device, "", into, source, number)
    low, high = limits(source)
    if low < limits(into)[0] or high > limits(into)[1]:
        check(device, "sat.", into, source, lambda bits: clamp(number(bits), into))


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("into", INTEGERS)
def test_registers_wider_than_their_types(device, into, source):
    """The low bytes of the source count, and the result is extended by its own sign."""
    x = operand_tuples("b64", 1)[0]
    result = device.evaluate(f"cvt.{into}.{source} %d, %x;", [np.uint64], x)
    bits = 8 * size(source)
    low = [signed(wrap(value, bits), bits) if source[0] == "s" else wrap(value, bits) for value in x.tolist()]
    result_bits = 8 * size(into)
    expected = [
        signed(wrap(value, result_bits), result_bits) if into[0] == "s" else wrap(value, result_bits) for value in low
    ]
    assert_same(result, np.array([wrap(value, 64) for value in expected], np.uint64), x)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("into", INTEGERS)
def test_floats_to_integers(device, into, source):
    if source == "bf16" and size(into) == 1:
        pytest.skip("PTX has no such conversion")
    for modifier, mode in TO_INTEGER.items():
        check(device, f"{modifier}.", into, source, lambda bits, m=mode: integer_of(bits, source, into, m))
        if source == "f32":
            check(
                device,
                f"{modifier}.ftz.",
                into,
                source,
                lambda bits, m=mode: integer_of(bits, source, into, m, ftz=True),
            )


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("into", INTEGERS)
def test_floats_near_the_limits_of_integers(device, into, source):
    dtype = np.float32 if source == "f32" else np.float64
    near = [
        np.nextafter(dtype(value), dtype(end))
        for value in (*limits(into), 0.5, 1.5, 2.5, -0.5)
        for end in (-np.inf, np.inf)
    ]
    near += [dtype(value) + dtype(k) for value in limits(into) for k in (-1, -0.5, 0, 0.5, 1)]
    x = np.array(near, dtype).view(unsigned(source))
    for modifier, mode in TO_INTEGER.items():
        check(device, f"{modifier}.", into, source, lambda bits, m=mode: integer_of(bits, source, into, m), x)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("into", FLOATS)
def test_integers_to_floats(device, into, source):
    if into == "bf16" and size(source) == 1:
        pytest.skip("PTX has no such conversion")

    def value(bits):
        number = signed(bits, 8 * size(source)) if source[0] == "s" else bits
        return number < 0, Fraction(abs(number))

    for mode in ("rn", "rz", "rm", "rp"):
        check(device, f"{mode}.", into, source, lambda bits, m=mode: float_of(value(bits), into, m))
    if into != "bf16":
        check(device, "rn.sat.", into, source, lambda bits: float_of(value(bits), into, "rn", sat=True))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("into", FLOATS)
def test_floats(device, into, source):
    if {into, source} == {"f16", "bf16"}:
        pytest.skip("PTX has no such conversion")
    widens = size(into) > size(source)
    if into != source:
        for mode in [""] if widens else ["rn", "rz", "rm", "rp"]:
            text = f"{mode}." if mode else ""
            check(device, text, into, source, lambda bits, m=mode or "rn": convert(bits, source, into, m))
    if "f32" in (into, source) and "bf16" not in (into, source):
        mode = "" if widens or into == source else "rn."
        flush = Real("f32").flushed

        def flushed(bits):
            result = convert(flush(bits) if source == "f32" else bits, source, into, "rn")
            return flush(result) if into == "f32" else result

        check(device, f"{mode}ftz.", into, source, flushed)
    if into != "bf16" and source != "bf16":
        mode = "" if widens or into == source else "rn."
        check(
            device, f"{mode}sat.", into, source, lambda bits: float_of(Real(source).value(bits), into, "rn", sat=True)
        )


@pytest.mark.parametrize("type", ["f16", "f32", "f64"])
@pytest.mark.parametrize("word", TO_INTEGER)
def test_floats_rounded_to_integral_values(device, word, type):
    real = Real(type)

    def rounded(bits):
        negative, magnitude = real.value(bits)
        if isinstance(magnitude, Fraction):
            magnitude = Fraction(abs(round_to_integer(-magnitude if negative else magnitude, TO_INTEGER[word])))
        return real.bits(negative, magnitude)

    check(device, f"{word}.", type, type, rounded)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_two_singles_into_a_pair(device, type, mode, relu):
    x, y = operand_tuples("f32", 2)

    def half(bits):
        result = float_of(Real("f32").value(bits), type, mode)
        return 0 if relu and result & 0x8000 else result

    expected = [half(b) | half(a) << 16 for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert_same(device.evaluate(f"cvt.{mode}{relu}.{type}x2.f32 %d, %x, %y;", [np.uint32], x, y), expected, x, y)
    expected = np.array([half(a) for a in x.tolist()], UNSIGNED[2])
    assert_same(device.evaluate(f"cvt.{mode}{relu}.{type}.f32 %d, %x;", [np.uint16], x), expected, x)


@pytest.mark.parametrize("word", ["rn", "rz", "rm", "rp"])
def test_results_that_rounding_makes_normal_are_flushed(device, word):
    """The operands are doubles near the least normal single."""
    real, least_normal = Real("f64"), (Real("f64").bias - Real("f32").bias + 1) << 52
    steps = [*range(-40, 41), *(sign << k for k in range(27, 31) for sign in (1, -1))]
    x = np.array([least_normal + step | sign for step in steps for sign in (0, real.sign)], np.uint64)

    def flushed(bits):
        negative, magnitude = real.value(bits)
        return Real("f32").bits(negative, magnitude if magnitude >= Real("f32").least_normal else Fraction(0), word)

    check(device, f"{word}.ftz.", "f32", "f64", flushed, x)
