"""Floating point by its definition: the exact rational result, rounded once."""

from fractions import Fraction
from math import isqrt

from operands import FORMATS

NEAREST, ZERO, DOWN, UP = "rn", "rz", "rm", "rp"
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}
INFINITE, NOT_A_NUMBER = "infinite", "nan"


class Real:
    """A floating-point format; a value is (is it negative, magnitude): a Fraction, INFINITE or NOT_A_NUMBER."""

    def __init__(self, name):
        self.name = name
        self.exponent, self.fraction = FORMATS[name]
        self.bias = (1 << self.exponent - 1) - 1
        self.sign = 1 << self.exponent + self.fraction
        self.infinite = ((1 << self.exponent) - 1) << self.fraction
        self.nan = NAN[name]

    def value(self, bits):
        negative, rest = bool(bits & self.sign), bits & self.sign - 1
        if rest >= self.infinite:
            return negative, INFINITE if rest == self.infinite else NOT_A_NUMBER
        exponent, fraction = rest >> self.fraction, rest & (1 << self.fraction) - 1
        if exponent:
            fraction |= 1 << self.fraction
        shift = max(exponent, 1) - self.bias - self.fraction
        return negative, Fraction(fraction << shift) if shift >= 0 else Fraction(fraction, 1 << -shift)

    def bits(self, negative, magnitude, mode=NEAREST):
        if magnitude == NOT_A_NUMBER:
            return self.nan
        if magnitude == INFINITE:
            return self.sign * negative | self.infinite
        if magnitude == 0:
            return self.sign * negative
        top, under = magnitude.numerator, magnitude.denominator
        exponent = top.bit_length() - under.bit_length()
        if (top << max(-exponent, 0)) < (under << max(exponent, 0)):
            exponent -= 1
        unit = max(exponent, 1 - self.bias) - self.fraction  # of the last place
        top, under = top << max(-unit, 0), under << max(unit, 0)
        steps, rest = divmod(top, under)
        away = {
            NEAREST: 2 * rest > under or (2 * rest == under and steps & 1),
            ZERO: False,
            DOWN: negative and rest > 0,
            UP: not negative and rest > 0,
        }[mode]
        made = ((unit + self.fraction + self.bias - 1) << self.fraction) + steps + away
        if made >= self.infinite:
            stays = mode == ZERO or (mode == DOWN and not negative) or (mode == UP and negative)
            made = self.infinite - 1 if stays else self.infinite
        return self.sign * negative | made

    @property
    def least_normal(self):
        return Fraction(1, 1 << self.bias - 1)

    def flushed(self, bits):
        return bits if bits & self.infinite else bits & self.sign

    def is_nan(self, bits):
        return bits & self.sign - 1 > self.infinite


def signed_sum(x, y, mode):
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
    (p, a), (q, b) = x, y
    if NOT_A_NUMBER in (a, b) or (INFINITE in (a, b) and 0 in (a, b)):
        return False, NOT_A_NUMBER
    return p != q, INFINITE if INFINITE in (a, b) else a * b


def quotient(x, y):
    (p, a), (q, b) = x, y
    if NOT_A_NUMBER in (a, b) or a == b == INFINITE or a == b == 0:
        return False, NOT_A_NUMBER
    if a == INFINITE or b == 0:
        return p != q, INFINITE
    return p != q, Fraction(0) if b == INFINITE else a / b


def root(x):
    negative, a = x
    if a == NOT_A_NUMBER or (negative and a != 0):
        return False, NOT_A_NUMBER
    if a in (INFINITE, 0):
        return x
    scale = 1 << 1300  # far below the last place of any root; half a step more stands for what is left
    whole = a.numerator * scale * scale // a.denominator
    found = isqrt(whole)
    exact = found * found == whole and whole * a.denominator == a.numerator * scale * scale
    return False, Fraction(found, scale) if exact else Fraction(2 * found + 1, 2 * scale)


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
    """The bits that an instruction makes of operands' bits."""
    real = Real(type)
    if ftz:
        operands = [real.flushed(one) for one in operands]
    negative, magnitude = OPERATIONS[op](mode, *(real.value(one) for one in operands))
    if sat and magnitude == NOT_A_NUMBER:
        return 0
    if ftz and magnitude not in (NOT_A_NUMBER, INFINITE) and magnitude < real.least_normal:
        magnitude = 0  # before it is rounded, as an H100 does
    made = real.bits(negative, magnitude, mode)
    if relu and not real.is_nan(made) and made & real.sign:
        return 0
    if sat:
        one = real.bias << real.fraction
        made = 0 if made & real.sign else min(made, one)
    return made


def smaller(type, x, y, greater=False, nan=False):
    """min, or max: of zeros -0 is the smaller one."""
    real = Real(type)
    if real.is_nan(x) or real.is_nan(y):
        if nan or (real.is_nan(x) and real.is_nan(y)):
            return real.nan
        return y if real.is_nan(x) else x

    def key(bits):
        return -(bits & real.sign - 1) - 1 if bits & real.sign else bits

    return (max if greater else min)(x, y, key=key)


def joined_signs(type, x, y, **how):
    """min or max of the magnitudes, with the sign of a product."""
    real = Real(type)
    made = smaller(type, x & real.sign - 1, y & real.sign - 1, **how)
    return made if real.is_nan(made) else made | (x ^ y) & real.sign


def canonical(type, bits):
    """PTX says which NaN single and half precision give; of double precision it does not."""
    real = Real(type)
    return [real.nan if real.is_nan(one) else one for one in bits]
