"""Conversions that drop bits, near every tie and in every rounding; and formats that only cvt has."""

from bisect import bisect_left
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from exact import INFINITE, NOT_A_NUMBER, Real
from operands import FORMATS, UNSIGNED, assert_same, signed, size, unsigned, wrap
from test_convert import float_of

ROUNDINGS = ("rn", "rz", "rm", "rp")


def near_ties(bits, fraction, seed, count=700):
    """Return numbers of all lengths whose dropped bits are a tie, or one or two more or less.

    fraction: the number of fraction bits of the format that drops the others.
    """
    rng = np.random.default_rng(seed)
    numbers = []
    for _ in range(count):
        length = int(rng.integers(1, bits + 1))
        dropped = max(length - fraction - 1, 0)
        top = int(rng.integers(0, 1 << 62)) % (1 << length - dropped) | 1 << length - dropped - 1
        tie = (1 << dropped >> 1) + int(rng.choice([-2, -1, 0, 0, 1, 2]))
        numbers.append(wrap((top << dropped) + tie * int(rng.choice([0, 1, 1])), bits))
    return np.array(numbers, UNSIGNED[bits // 8])


@pytest.mark.parametrize("source", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("into", FORMATS)
def test_integers_near_ties(device, into, source):
    bits = 8 * size(source)
    x = near_ties(bits, FORMATS[into][1], seed=bits)
    if source[0] == "s":
        x = np.concatenate([x, 0 - x])

    def value(number):
        number = signed(number, bits) if source[0] == "s" else number
        return number < 0, Fraction(abs(number))

    for mode in ROUNDINGS:
        result = device.evaluate(f"cvt.{mode}.{into}.{source} %d, %x;", [unsigned(into)], x)
        assert_same(result, [float_of(value(number), into, mode) for number in x.tolist()], x)


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("into", ["f16", "bf16", "f32"])
def test_floats_near_ties(device, into, source):
    if into == source:
        pytest.skip("nothing is dropped")
    # min_exponent: that of a quarter of the least subnormal number of the result.
    real, min_exponent = Real(source), {"f16": -26, "bf16": -135, "f32": -151}[into]
    rng = np.random.default_rng(5)
    integers = near_ties(32 if source == "f32" else 64, FORMATS[into][1], seed=7).tolist()
    scaled = [Fraction(integer) * Fraction(2) ** int(rng.integers(min_exponent, 20)) for integer in integers]
    x = np.array([real.bits(k % 2 == 1, magnitude, "rz") for k, magnitude in enumerate(scaled)], unsigned(source))
    for mode in ROUNDINGS:
        result = device.evaluate(f"cvt.{mode}.{into}.{source} %d, %x;", [unsigned(into)], x)
        assert_same(result, [float_of(real.value(bits), into, mode) for bits in x.tolist()], x)


def tf32_of(bits, mode, relu, finite):
    """Return the bits of a single rounded to tf32."""
    real = Real("f32")
    negative, magnitude = real.value(bits)
    if magnitude == NOT_A_NUMBER:
        return real.nan
    result = real.infinite if magnitude == INFINITE else None
    if result is None:
        dropped, high_bits = bits & 0x1FFF, bits & 0x7FFFE000
        rounds_away = {
            "rna": dropped >= 0x1000,
            "rz": False,
            "rn": dropped > 0x1000 or (dropped == 0x1000 and high_bits >> 13 & 1),
        }
        result = high_bits + 0x2000 * rounds_away[mode]
    if finite and result >= real.infinite:
        result = real.infinite - 0x2000
    return 0 if negative and relu else result | real.sign * negative


SINGLES = np.concatenate(
    [
        np.random.default_rng(1).integers(0, 1 << 32, 2000, np.uint64),
        np.random.default_rng(2).integers(0, 1 << 19, 1000, np.uint64) << np.uint64(13) | np.uint64(0x1000),
        np.array(
            [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F7FE000, 1, 0x1000], np.uint64
        ),
    ]
).astype(np.uint32)


@pytest.mark.parametrize("words", ["rna", "rna.satfinite", "rn", "rz", "rn.relu", "rz.relu"])
def test_tf32(device, words):
    result = device.evaluate(f"cvt.{words}.tf32.f32 %d, %x;", [np.uint32], SINGLES)
    modifiers = words.split(".")
    assert_same(
        result,
        [tf32_of(bits, modifiers[0], "relu" in modifiers, "satfinite" in modifiers) for bits in SINGLES.tolist()],
        SINGLES,
    )


BYTES = {"e4m3x2": (4, 3, 7, 0x7E), "e5m2x2": (5, 2, 15, 0x7B)}  # exponent, fraction, bias, the largest


def byte_value(byte, format):
    """Return the magnitude of an 8-bit float."""
    _, fraction, bias, largest = BYTES[format]
    exponent, significand, magnitude = (byte & 0x7F) >> fraction, byte & (1 << fraction) - 1, byte & 0x7F
    if magnitude > largest:
        return INFINITE if format == "e5m2x2" and magnitude == 0x7C else NOT_A_NUMBER
    significand += (1 << fraction) * (exponent > 0)
    return Fraction(significand) * Fraction(2) ** (max(exponent, 1) - bias - fraction)


@cache
def all_bytes(format):
    """Return the magnitudes of all 8-bit floats, in order."""
    return [byte_value(byte, format) for byte in range(BYTES[format][3] + 1)]


def byte_of(value, format, relu):
    """Return the nearest 8-bit float, and the even one of two."""
    negative, magnitude = value
    if magnitude == NOT_A_NUMBER:
        return 0x7F
    largest = BYTES[format][3]
    numbers = all_bytes(format)
    if magnitude == INFINITE or magnitude > numbers[-1]:
        result = largest
    else:
        above = bisect_left(numbers, magnitude)
        result = min((max(above - 1, 0), above), key=lambda byte: (abs(numbers[byte] - magnitude), byte & 1))
    return 0 if negative and relu else result | 0x80 * negative


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("format", BYTES)
def test_fp8_from_floats(device, format, relu):
    rng = np.random.default_rng(3)
    x, y = (np.float32(rng.standard_normal(500) * 2.0 ** rng.integers(-18, 18, 500)).view(np.uint32) for _ in "xy")
    x[:5] = [0x7F800000, 0xFF800000, 0x7FC00000, 0, 1 << 31]
    y[:250] &= np.uint32(0xFFE00000)  # ties among them
    result = device.evaluate(f"cvt.rn.satfinite{relu}.{format}.f32 %d, %x, %y;", [np.uint16], x, y)

    def of(bits):
        return byte_of(Real("f32").value(bits), format, relu)

    assert_same(result, [of(a) << 8 | of(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], x, y)


@pytest.mark.parametrize("format", BYTES)
def test_fp8_from_and_to_halves(device, format):
    x = np.arange(1 << 16, dtype=np.uint64).astype(np.uint16)[::37]

    def half(byte):
        magnitude = byte_value(byte, format)
        return Real("f16").bits(magnitude != NOT_A_NUMBER and byte >= 0x80, magnitude)

    expected = [half(pair & 0xFF) | half(pair >> 8) << 16 for pair in x.tolist()]
    assert_same(device.evaluate(f"cvt.rn.f16x2.{format} %d, %x;", [np.uint32], x), expected, x)
    pairs = (np.arange(0, 1 << 16, 97, dtype=np.uint32) * np.uint32(0x10001)) ^ np.uint32(0x5A5A)
    result = device.evaluate(f"cvt.rn.satfinite.{format}.f16x2 %d, %x;", [np.uint16], pairs)
    expected = [
        byte_of(Real("f16").value(pair & 0xFFFF), format, "") | byte_of(Real("f16").value(pair >> 16), format, "") << 8
        for pair in pairs.tolist()
    ]
    assert_same(result, expected, pairs)


@pytest.mark.parametrize("type", ["u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16"])
def test_cvt_pack(device, type):
    bits = int(type[1:])
    rng = np.random.default_rng(bits)
    x, y = (rng.integers(-3 << bits, 3 << bits, 400).astype(np.int32).view(np.uint32) for _ in "xy")
    z = rng.integers(0, 1 << 32, 400, np.uint64).astype(np.uint32)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)
    text = f"cvt.pack.sat.{type}.s32" + (" %d, %x, %y;" if bits == 16 else ".b32 %d, %x, %y, %z;")

    def held(number):
        return wrap(min(max(signed(number, 32), low), high), bits)

    expected = [
        wrap(held(b) | held(a) << bits | (c << 2 * bits if bits < 16 else 0), 32)
        for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
    ]
    assert_same(device.evaluate(text, [np.uint32], x, y, z), expected, x, y, z)
