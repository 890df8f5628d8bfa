"""A reference for floating-point instructions: the exact rational result, rounded once."""

from fractions import Fraction
from math import isqrt

from operands import FORMATS

NEAREST, ZERO, DOWN, UP = "rn", "rz", "rm", "rp"
# The bits of the canonical NaN of each format.
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}
INFINITE, NOT_A_NUMBER = "infinite", "nan"


class Real:
    """A floating-point format; a value is (is_negative, magnitude): a Fraction, INFINITE or NOT_A_NUMBER."""

    def __init__(self, name):
        self.name = name
        self.exponent, self.fraction = FORMATS[name]  # numbers of bits
        self.bias = (1 << self.exponent - 1) - 1
        self.sign = 1 << self.exponent + self.fraction
        self.infinite = ((1 << self.exponent) - 1) << self.fraction
        self.nan = NAN[name]

    def value(self, bits):
        """Return the number that the bits stand for."""
        negative, magnitude = bool(bits & self.sign), bits & self.sign - 1
        if magnitude >= self.infinite:
            return negative, INFINITE if magnitude == self.infinite else NOT_A_NUMBER
        exponent, fraction = magnitude >> self.fraction, magnitude & (1 << self.fraction) - 1
        if exponent:
            fraction |= 1 << self.fraction
        shift = max(exponent, 1) - self.bias - self.fraction
        return negative, Fraction(fraction << shift) if shift >= 0 else Fraction(fraction, 1 << -shift)

    def bits(self, negative, magnitude, mode=NEAREST):
        """Return the bits of the number, rounded in the mode."""
        if magnitude == NOT_A_NUMBER:
            return self.nan
        if magnitude == INFINITE:
            return self.sign * negative | self.infinite
        if magnitude == 0:
            return self.sign * negative
        numerator, denominator = magnitude.numerator, magnitude.denominator
        exponent = numerator.bit_length() - denominator.bit_length()
        if (numerator << max(-exponent, 0)) < (denominator << max(exponent, 0)):
            exponent -= 1
        unit = max(exponent, 1 - self.bias) - self.fraction  # of the last place
        numerator, denominator = numerator << max(-unit, 0), denominator << max(unit, 0)
        steps, remainder = divmod(numerator, denominator)
        rounds_away = {
            NEAREST: 2 * remainder > denominator or (2 * remainder == denominator and steps & 1),
            ZERO: False,
            DOWN: negative and remainder > 0,
            UP: not negative and remainder > 0,
        }[mode]
        encoded = ((unit + self.fraction + self.bias - 1) << self.fraction) + steps + rounds_away
        if encoded >= self.infinite:
            is_finite = mode == ZERO or (mode == DOWN and not negative) or (mode == UP and negative)
            encoded = self.infinite - 1 if is_finite else self.infinite
        return self.sign * negative | encoded

    @property
    def least_normal(self):
        return Fraction(1, 1 << self.bias - 1)

    def flushed(self, bits):
        """Return the bits, or a zero of their sign if they are subnormal."""
        return bits if bits & self.infinite else bits & self.sign

    def is_nan(self, bits):
        return bits & self.sign - 1 > self.infinite


def signed_sum(x, y, mode):
    """Return x + y as (is_negative, magnitude); the mode decides the sign of an exact zero."""
    (p, a), (q, b) = x, y
    if NOT_A_NUMBER in (a, b) or (a == b == INFINITE and p != q):
        return False, NOT_A_NUMBER
    if INFINITE in (a, b):
        return (p, a) if a == INFINITE else (q, b)
    if a == b == 0:
        return (p if p == q else mode == DOWN), a
    total = (-a if p else a) + (-b if q else b)
    return (mode == DOWN if total == 0 else total < 0), abs(total)


def product(x, y):
    """Return x * y as (is_negative, magnitude)."""
    (p, a), (q, b) = x, y
    if NOT_A_NUMBER in (a, b) or (INFINITE in (a, b) and 0 in (a, b)):
        return False, NOT_A_NUMBER
    return p != q, INFINITE if INFINITE in (a, b) else a * b


def quotient(x, y):
    """Return x / y as (is_negative, magnitude)."""
    (p, a), (q, b) = x, y
    if NOT_A_NUMBER in (a, b) or a == b == INFINITE or a == b == 0:
        return False, NOT_A_NUMBER
    if a == INFINITE or b == 0:
        return p != q, INFINITE
    return p != q, Fraction(0) if b == INFINITE else a / b


def root(x):
    """Return a number whose rounding is that of the square root."""
    negative, a = x
    if a == NOT_A_NUMBER or (negative and a != 0):
        return False, NOT_A_NUMBER
    if a in (INFINITE, 0):
        return x
    scale = 1 << 1300  # far below the last place of any root; half a step more stands for the remainder
    square = a.numerator * scale * scale // a.denominator
    estimate = isqrt(square)
    exact = estimate * estimate == square and square * a.denominator == a.numerator * scale * scale
    return False, Fraction(estimate, scale) if exact else Fraction(2 * estimate + 1, 2 * scale)


OPERATIONS = {
    "add": lambda mode, x, y: signed_sum(x, y, mode),
    "sub": lambda mode, x, y: signed_sum(x, (not y[0], y[1]), mode),
    "mul": lambda mode, x, y: product(x, y),
    "div": lambda mode, x, y: quotient(x, y),
    "fma": lambda mode, x, y, z: signed_sum(product(x, y), z, mode),
    "rcp": lambda mode, x: quotient((False, Fraction(1)), x),
    "sqrt": lambda mode, x: root(x),
}


def result(type, op, mode, operands, ftz=False, sat=False, relu=False):
    """Return the bits of an instruction's result for the bits of its operands."""
    real = Real(type)
    if ftz:
        operands = [real.flushed(bits) for bits in operands]
    negative, magnitude = OPERATIONS[op](mode, *(real.value(bits) for bits in operands))
    if sat and magnitude == NOT_A_NUMBER:
        return 0
    if ftz and magnitude not in (NOT_A_NUMBER, INFINITE) and magnitude < real.least_normal:
        magnitude = 0  # before it is rounded, as an H100 does
    rounded = real.bits(negative, magnitude, mode)
    if relu and not real.is_nan(rounded) and rounded & real.sign:
        return 0
    if sat:
        one = real.bias << real.fraction
        rounded = 0 if rounded & real.sign else min(rounded, one)
    return rounded


def smaller(type, x, y, greater=False, nan=False):
    """Return the bits of min, or of max if `greater`; -0 is smaller than 0."""
    real = Real(type)
    if real.is_nan(x) or real.is_nan(y):
        if nan or (real.is_nan(x) and real.is_nan(y)):
            return real.nan
        return y if real.is_nan(x) else x

    def key(bits):
        return -(bits & real.sign - 1) - 1 if bits & real.sign else bits

    return (max if greater else min)(x, y, key=key)


def joined_signs(type, x, y, **options):
    """Return min or max of the magnitudes, with the sign of the product (.xorsign.abs)."""
    real = Real(type)
    bits = smaller(type, x & real.sign - 1, y & real.sign - 1, **options)
    return bits if real.is_nan(bits) else bits | (x ^ y) & real.sign


def canonical(type, bits):
    """Replace every NaN by the canonical one, for types whose NaNs PTX does not specify (double precision)."""
    real = Real(type)
    return [real.nan if real.is_nan(value) else value for value in bits]
