"""Floating point by its definition, in integers: a number is (negative, m, e), which stands for m * 2**e.

It is independent of tests/vgpu/exact.py, which does the same in fractions.
"""

from math import isqrt

from operands import FORMATS

from fuzzing.forms import CANONICAL, AnyNan

NAN, INFINITE = -1, -2  # in m's place


class Format:
    """Bits of a floating-point type, and the numbers that they stand for."""

    def __init__(self, name):
        self.name = name
        exponent, self.fraction = FORMATS[name]
        self.bias = (1 << exponent - 1) - 1
        self.sign = 1 << exponent + self.fraction
        self.infinite = (1 << exponent) - 1 << self.fraction
        self.one = self.bias << self.fraction
        self.lowest = 1 - self.bias - self.fraction  # exponent of the least subnormal number
        self.any_nan = AnyNan(name)
        self.nan = self.any_nan if name == "f64" else CANONICAL[name]

    def number(self, bits):
        rest = bits & self.sign - 1
        if rest >= self.infinite:
            return bool(bits & self.sign), INFINITE if rest == self.infinite else NAN, 0
        exponent, m = rest >> self.fraction, rest & (1 << self.fraction) - 1
        if exponent:
            return bool(bits & self.sign), m | 1 << self.fraction, exponent - 1 + self.lowest
        return bool(bits & self.sign), m, self.lowest

    def bits(self, number, mode="rn", more=False):
        """The number, and a little more if `more`, rounded once."""
        negative, m, e = number
        if m == NAN:
            return self.nan
        sign = self.sign if negative else 0
        if m == INFINITE:
            return sign | self.infinite
        if m == 0:
            return sign
        unit = max(m.bit_length() - 1 + e - self.fraction, self.lowest)
        shift = unit - e
        steps, rest, half = (m << -shift, 0, 1) if shift <= 0 else (m >> shift, m & (1 << shift) - 1, 1 << shift - 1)
        if mode == "rn":
            away = rest > half or (rest == half and (more or steps & 1 == 1))
        else:
            away = (rest > 0 or more) and mode == ("rm" if negative else "rp")
        steps += away
        made = (unit - self.lowest << self.fraction) + steps
        if made >= self.infinite:
            stays = mode == "rz" or mode == ("rp" if negative else "rm")
            made = self.infinite - 1 if stays else self.infinite
        return sign | made

    def flush(self, bits):
        return bits if bits & self.infinite else bits & self.sign

    def is_nan(self, bits):
        return bits & self.sign - 1 > self.infinite

    def is_below_normal(self, number):
        _, m, e = number
        return m > 0 and m.bit_length() - 1 + e < 1 - self.bias


def negated(x):
    return (not x[0], *x[1:])


def add(x, y, mode="rn"):
    (p, a, d), (q, b, e) = x, y
    if NAN in (a, b) or (a == b == INFINITE and p != q):
        return False, NAN, 0
    if INFINITE in (a, b):
        return x if a == INFINITE else y
    if a == b == 0:
        return (p if p == q else mode == "rm"), 0, 0
    low = min(d, e)
    total = (-a if p else a) * (1 << d - low) + (-b if q else b) * (1 << e - low)
    return (mode == "rm" if total == 0 else total < 0), abs(total), low


def multiply(x, y):
    (p, a, d), (q, b, e) = x, y
    if NAN in (a, b) or (INFINITE in (a, b) and 0 in (a, b)):
        return False, NAN, 0
    if INFINITE in (a, b):
        return p != q, INFINITE, 0
    return p != q, a * b, d + e


def divide(x, y, digits=70):
    """The number, and is there more?"""
    (p, a, d), (q, b, e) = x, y
    if NAN in (a, b) or a == b == INFINITE or a == b == 0:
        return (False, NAN, 0), False
    if a == INFINITE or b == 0:
        return (p != q, INFINITE, 0), False
    if b == INFINITE or a == 0:
        return (p != q, 0, 0), False
    shift = max(digits + b.bit_length() - a.bit_length(), 0)
    found, rest = divmod(a << shift, b)
    return (p != q, found, d - e - shift), rest != 0


def root(x, digits=70):
    negative, a, e = x
    if a == NAN or (negative and a != 0):
        return (False, NAN, 0), False
    if a in (INFINITE, 0):
        return x, False
    shift = max(2 * digits - a.bit_length(), 0)
    shift += (e - shift) & 1
    found = isqrt(a << shift)
    return (False, found, (e - shift) // 2), found * found != a << shift


def whole(number, mode):
    """As an integer number."""
    negative, m, e = number
    if m in (NAN, INFINITE) or e >= 0:
        return number
    steps, rest, half = m >> -e, m & (1 << -e) - 1, 1 << -e - 1
    if mode == "rn":
        steps += rest > half or (rest == half and steps & 1)
    elif mode == ("rm" if negative else "rp"):
        steps += rest > 0
    return negative, steps, 0


def rounded(format, number, mode="rn", more=False, ftz=False, sat=False, relu=False):
    """Bits of a result; what is subnormal before it is rounded is flushed, as an H100 does."""
    if sat and (number[1] == NAN or number[0]):
        return 0
    if ftz and format.is_below_normal(number):
        number = (number[0], 0, 0)
    made = format.bits(number, mode, more)
    if not isinstance(made, int):
        return made
    if relu and not format.is_nan(made) and made & format.sign:
        return 0
    return min(made, format.one) if sat else made


def key(format, bits):
    """An order of all numbers, -0 before 0."""
    rest = bits & format.sign - 1
    return -rest - 1 if bits & format.sign else rest


def smaller(format, a, b, greater=False, nan=False):
    """min, or max: with a number and a NaN it is the number, or the NaN if `nan`."""
    if format.is_nan(a) or format.is_nan(b):
        if nan or (format.is_nan(a) and format.is_nan(b)):
            return format.nan
        return b if format.is_nan(a) else a
    return (max if greater else min)(a, b, key=lambda bits: key(format, bits))


def compare(format, a, b):
    """-1, 0, 1, or None where one is a NaN."""
    if format.is_nan(a) or format.is_nan(b):
        return None
    x, y = (0 if one & format.sign - 1 == 0 else key(format, one) for one in (a, b))
    return (x > y) - (x < y)
