"""A reference for floating-point arithmetic in integers: (negative, m, e) stands for the number m * 2**e.

It is independent of tests/vgpu/exact.py, which computes with fractions.
"""

from math import isqrt

from operands import FORMATS

from fuzzing.forms import CANONICAL, AnyNan

NAN, INFINITE = -1, -2  # values of m


class Format:
    """The bits of a floating-point type, and the numbers that they stand for."""

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
        """Return the number that the bits stand for."""
        magnitude = bits & self.sign - 1
        if magnitude >= self.infinite:
            return bool(bits & self.sign), INFINITE if magnitude == self.infinite else NAN, 0
        exponent, m = magnitude >> self.fraction, magnitude & (1 << self.fraction) - 1
        if exponent:
            return bool(bits & self.sign), m | 1 << self.fraction, exponent - 1 + self.lowest
        return bool(bits & self.sign), m, self.lowest

    def bits(self, number, mode="rn", is_inexact=False):
        """Return the bits of a number rounded once; `is_inexact` says that the true magnitude is slightly larger."""
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
        steps, remainder, half = (
            (m << -shift, 0, 1) if shift <= 0 else (m >> shift, m & (1 << shift) - 1, 1 << shift - 1)
        )
        if mode == "rn":
            rounds_away = remainder > half or (remainder == half and (is_inexact or steps & 1 == 1))
        else:
            rounds_away = (remainder > 0 or is_inexact) and mode == ("rm" if negative else "rp")
        steps += rounds_away
        encoded = (unit - self.lowest << self.fraction) + steps
        if encoded >= self.infinite:
            is_finite = mode == "rz" or mode == ("rp" if negative else "rm")
            encoded = self.infinite - 1 if is_finite else self.infinite
        return sign | encoded

    def flush(self, bits):
        """Return the bits, or a zero of their sign if they are subnormal."""
        return bits if bits & self.infinite else bits & self.sign

    def is_nan(self, bits):
        return bits & self.sign - 1 > self.infinite

    def is_below_normal(self, number):
        """Return whether the number is nonzero and smaller than the least normal one."""
        _, m, e = number
        return m > 0 and m.bit_length() - 1 + e < 1 - self.bias


def negated(x):
    """Return -x."""
    return (not x[0], *x[1:])


def add(x, y, mode="rn"):
    """Return x + y; the mode decides the sign of an exact zero."""
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
    """Return x * y."""
    (p, a, d), (q, b, e) = x, y
    if NAN in (a, b) or (INFINITE in (a, b) and 0 in (a, b)):
        return False, NAN, 0
    if INFINITE in (a, b):
        return p != q, INFINITE, 0
    return p != q, a * b, d + e


def divide(x, y, digits=70):
    """Return the quotient, and whether it is inexact."""
    (p, a, d), (q, b, e) = x, y
    if NAN in (a, b) or a == b == INFINITE or a == b == 0:
        return (False, NAN, 0), False
    if a == INFINITE or b == 0:
        return (p != q, INFINITE, 0), False
    if b == INFINITE or a == 0:
        return (p != q, 0, 0), False
    shift = max(digits + b.bit_length() - a.bit_length(), 0)
    quotient, remainder = divmod(a << shift, b)
    return (p != q, quotient, d - e - shift), remainder != 0


def root(x, digits=70):
    """Return the square root, and whether it is inexact."""
    negative, a, e = x
    if a == NAN or (negative and a != 0):
        return (False, NAN, 0), False
    if a in (INFINITE, 0):
        return x, False
    shift = max(2 * digits - a.bit_length(), 0)
    shift += (e - shift) & 1
    estimate = isqrt(a << shift)
    return (False, estimate, (e - shift) // 2), estimate * estimate != a << shift


def round_to_integer(number, mode):
    """Return the number rounded to an integer."""
    negative, m, e = number
    if m in (NAN, INFINITE) or e >= 0:
        return number
    steps, remainder, half = m >> -e, m & (1 << -e) - 1, 1 << -e - 1
    if mode == "rn":
        steps += remainder > half or (remainder == half and steps & 1)
    elif mode == ("rm" if negative else "rp"):
        steps += remainder > 0
    return negative, steps, 0


def rounded(format, number, mode="rn", is_inexact=False, ftz=False, sat=False, relu=False):
    """Return the bits of a result; a number that is subnormal before rounding is flushed, as on an H100."""
    if sat and (number[1] == NAN or number[0]):
        return 0
    if ftz and format.is_below_normal(number):
        number = (number[0], 0, 0)
    bits = format.bits(number, mode, is_inexact)
    if not isinstance(bits, int):
        return bits
    if relu and not format.is_nan(bits) and bits & format.sign:
        return 0
    return min(bits, format.one) if sat else bits


def ordering_key(format, bits):
    """Return a key that orders all numbers, -0 before 0."""
    magnitude = bits & format.sign - 1
    return -magnitude - 1 if bits & format.sign else magnitude


def smaller(format, a, b, greater=False, nan=False):
    """Return min, or max if `greater`: of a number and a NaN the number, or the NaN if `nan`."""
    if format.is_nan(a) or format.is_nan(b):
        if nan or (format.is_nan(a) and format.is_nan(b)):
            return format.nan
        return b if format.is_nan(a) else a
    return (max if greater else min)(a, b, key=lambda bits: ordering_key(format, bits))


def compare(format, a, b):
    """Return -1, 0 or 1, or None if an operand is a NaN."""
    if format.is_nan(a) or format.is_nan(b):
        return None
    x, y = (0 if bits & format.sign - 1 == 0 else ordering_key(format, bits) for bits in (a, b))
    return (x > y) - (x < y)
