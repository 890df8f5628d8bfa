"""Integer arithmetic and logic of every width, against Python's integers."""

import numpy as np
import pytest
from operands import assert_same, operand_tuples, signed, size, unsigned, wrap

WIDTHS = ["u16", "s16", "u32", "s32", "u64", "s64"]


def values(type, *columns):
    """Return the operands as lists of Python's integers."""
    bits = 8 * size(type)
    lists = [column.tolist() for column in columns]
    return [[signed(v, bits) for v in numbers] for numbers in lists] if type[0] == "s" else lists


def check(device, text, type, reference, arity=2, out=None, columns=None):
    """Assert the results of an instruction for all operands, which evaluate() gives it as %x, %y, ...; %d: the result.

    out: the type of the result, if it is not that of the operands; columns: the operands, if not operand_tuples().
    """
    columns = columns or operand_tuples(type, arity)
    bits = 8 * size(out or type)
    expected = [wrap(reference(*row), bits) for row in zip(*values(type, *columns), strict=True)]
    names = ", ".join(f"%{name}" for name in "xyzw"[:arity])
    assert_same(device.evaluate(f"{text} %d, {names};", [unsigned(out or type)], *columns), expected, *columns)


def clamped(value, type="s32"):
    bits = 8 * size(type)
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, value))


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul.lo": lambda a, b: a * b, "min": min, "max": max}


@pytest.mark.parametrize("type", WIDTHS)
@pytest.mark.parametrize("op", BINARY)
def test_add_sub_mul_min_and_max(device, op, type):
    check(device, f"{op}.{type}", type, BINARY[op])


@pytest.mark.parametrize("op", ["add", "sub"])
def test_saturating_sums(device, op):
    check(device, f"{op}.sat.s32", "s32", lambda a, b: clamped(BINARY[op](a, b)))


@pytest.mark.parametrize("type", WIDTHS)
def test_products(device, type):
    bits = 8 * size(type)
    check(device, f"mul.hi.{type}", type, lambda a, b: a * b >> bits)
    check(device, f"mad.lo.{type}", type, lambda a, b, c: a * b + c, 3)
    check(device, f"mad.hi.{type}", type, lambda a, b, c: (a * b >> bits) + c, 3)
    if type == "s32":
        check(device, "mad.hi.sat.s32", type, lambda a, b, c: clamped((a * b >> 32) + c), 3)


@pytest.mark.parametrize("type", ["u16", "s16", "u32", "s32"])
def test_wide_products(device, type):
    wide = f"{type[0]}{2 * int(type[1:])}"
    check(device, f"mul.wide.{type}", type, lambda a, b: a * b, out=wide)
    x, y = operand_tuples(type, 2)
    (z,) = operand_tuples(wide, 1, len(x))
    z = z[: len(x)]
    expected = [wrap(a * b + c, 8 * size(wide)) for a, b, c in zip(*values(type, x, y), *values(wide, z), strict=True)]
    assert_same(device.evaluate(f"mad.wide.{type} %d, %x, %y, %z;", [unsigned(wide)], x, y, z), expected, x, y, z)


def low_24_bits(value, type):
    return signed(value & 0xFFFFFF, 24) if type[0] == "s" else value & 0xFFFFFF


@pytest.mark.parametrize("type", ["u32", "s32"])
def test_mul24_and_mad24(device, type):
    def product(a, b):
        return low_24_bits(a, type) * low_24_bits(b, type)

    check(device, f"mul24.lo.{type}", type, product)
    check(device, f"mul24.hi.{type}", type, lambda a, b: product(a, b) >> 16)
    check(device, f"mad24.lo.{type}", type, lambda a, b, c: product(a, b) + c, 3)
    check(device, f"mad24.hi.{type}", type, lambda a, b, c: (product(a, b) >> 16) + c, 3)
    if type == "s32":
        check(device, "mad24.hi.sat.s32", type, lambda a, b, c: clamped((product(a, b) >> 16) + c), 3)


@pytest.mark.parametrize("type", WIDTHS)
def test_div_and_rem(device, type):
    x, y = operand_tuples(type, 2)
    defined = y != 0  # PTX does not specify the result of a division by zero
    columns = [x[defined], y[defined]]
    check(device, f"div.{type}", type, quotient, columns=columns)
    check(device, f"rem.{type}", type, lambda a, b: a - b * quotient(a, b), columns=columns)


@pytest.mark.parametrize("type", WIDTHS)
def test_sad(device, type):
    check(device, f"sad.{type}", type, lambda a, b, c: c + abs(a - b), 3)


@pytest.mark.parametrize("type", ["s16", "s32", "s64"])
def test_neg_and_abs(device, type):
    check(device, f"neg.{type}", type, lambda a: -a, 1)
    check(device, f"abs.{type}", type, abs, 1)


LOGIC = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


@pytest.mark.parametrize("type", ["b16", "b32", "b64"])
def test_logic(device, type):
    for op, reference in LOGIC.items():
        check(device, f"{op}.{type}", type, reference)
    check(device, f"not.{type}", type, lambda a: ~a, 1)
    check(device, f"cnot.{type}", type, lambda a: a == 0, 1)


@pytest.mark.parametrize("op", ["and", "or", "xor"])
def test_logic_of_predicates(device, op):
    x, y = np.array([0, 0, 1, 1] * 16, np.uint32), np.array([0, 1] * 32, np.uint32)
    body = f"""setp.ne.u32 %p0, %x, 0; setp.ne.u32 %p1, %y, 0; {op}.pred %p2, %p0, %p1; not.pred %p3, %p2;
    selp.u32 %d, 1, 0, %p2; selp.u32 %e, 1, 0, %p3;"""
    d, e = device.evaluate(body, [np.uint32, np.uint32], x, y)
    assert_same(d, [LOGIC[op](a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], x, y)
    assert_same(e, 1 - d, x, y)


@pytest.mark.parametrize("type", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts(device, type):
    bits = 8 * size(type)
    (x,) = operand_tuples(type, 1, 6000)
    shifts = np.array([*range(bits + 4), 255, 256, 1 << 16, 1 << 31, (1 << 32) - 1], np.uint32)
    shifts = np.resize(shifts, len(x))
    (numbers,) = values(type, x)
    if type[0] != "s":
        expected = [wrap(a << min(b, bits), bits) for a, b in zip(numbers, shifts.tolist(), strict=True)]
        assert_same(device.evaluate(f"shl.b{bits} %d, %x, %y;", [unsigned(type)], x, shifts), expected, x, shifts)
    expected = [wrap(a >> min(b, bits), bits) for a, b in zip(numbers, shifts.tolist(), strict=True)]
    assert_same(device.evaluate(f"shr.{type} %d, %x, %y;", [unsigned(type)], x, shifts), expected, x, shifts)


def parts(value, type, bits):
    """Split a word into numbers of `bits` bits, the lowest first."""
    numbers = [value >> k & (1 << bits) - 1 for k in range(0, 32, bits)]
    return [signed(v, bits) for v in numbers] if type[0] == "s" else numbers


@pytest.mark.parametrize("second", ["u32", "s32"])
@pytest.mark.parametrize("first", ["u32", "s32"])
def test_dp4a_and_dp2a(device, first, second):
    x, y, z = operand_tuples("b32", 3)
    rows = list(zip(x.tolist(), y.tolist(), z.tolist(), strict=True))
    expected4 = [
        wrap(c + sum(p * q for p, q in zip(parts(a, first, 8), parts(b, second, 8), strict=True)), 32)
        for a, b, c in rows
    ]
    assert_same(device.evaluate(f"dp4a.{first}.{second} %d, %x, %y, %z;", [np.uint32], x, y, z), expected4, x, y, z)
    for half, start in (("lo", 0), ("hi", 2)):
        expected2 = [
            wrap(
                c
                + sum(p * q for p, q in zip(parts(a, first, 16), parts(b, second, 8)[start : start + 2], strict=True)),
                32,
            )
            for a, b, c in rows
        ]
        assert_same(
            device.evaluate(f"dp2a.{half}.{first}.{second} %d, %x, %y, %z;", [np.uint32], x, y, z), expected2, x, y, z
        )


@pytest.mark.parametrize("type", ["u16x2", "s16x2"])
def test_pairs_of_16_bit_integers(device, type):
    x, y = operand_tuples("b32", 2)
    for op in ("add", "min", "max"):
        halves = [
            [wrap(BINARY[op](p, q), 16) for p, q in zip(parts(a, type, 16), parts(b, type, 16), strict=True)]
            for a, b in zip(x.tolist(), y.tolist(), strict=True)
        ]
        assert_same(
            device.evaluate(f"{op}.{type} %d, %x, %y;", [np.uint32], x, y), [a | b << 16 for a, b in halves], x, y
        )


@pytest.mark.parametrize("op", ["min", "max"])
def test_relu_of_min_and_max(device, op):
    check(device, f"{op}.relu.s32", "s32", lambda a, b: max(BINARY[op](a, b), 0))
    x, y = operand_tuples("b32", 2)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    halves = [
        [max(BINARY[op](p, q), 0) for p, q in zip(parts(a, "s", 16), parts(b, "s", 16), strict=True)] for a, b in pairs
    ]
    expected = [a | b << 16 for a, b in halves]
    assert_same(device.evaluate(f"{op}.relu.s16x2 %d, %x, %y;", [np.uint32], x, y), expected, x, y)


@pytest.mark.parametrize("type", ["u32", "s32"])
@pytest.mark.parametrize("op", ["vmax4", "vmin4", "vadd4"])
def test_four_bytes(device, op, type):
    reference = {"vmax4": max, "vmin4": min, "vadd4": lambda a, b: a + b}[op]
    x, y = operand_tuples("b32", 2)
    expected = [
        sum(
            wrap(reference(p, q), 8) << 8 * k
            for k, (p, q) in enumerate(zip(parts(a, type, 8), parts(b, type, 8), strict=True))
        )
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    body = f"mov.b32 %r1, 0; {op}.{type}.{type}.{type} %d, %x, %y, %r1;"
    assert_same(device.evaluate(body, [np.uint32], x, y), expected, x, y)


def part(value, selector, type):
    """Return a byte or a half of a word, or all of it, as a number."""
    bits = {"": 32, "b": 8, "h": 16}[selector[:1]]
    numbers = value >> bits * int(selector[1:] or 0) & (1 << bits) - 1
    return signed(numbers, bits) if type == "s32" else numbers


@pytest.mark.parametrize("second", ["u32", "s32"])
@pytest.mark.parametrize("first", ["u32", "s32"])
def test_products_of_parts(device, first, second):
    x, y, z = operand_tuples("b32", 3)
    rows = list(zip(x.tolist(), y.tolist(), z.tolist(), strict=True))
    for x_part, y_part in (("", ""), ("b0", "b3"), ("b2", "h1"), ("h0", "b1"), ("h1", ""), ("", "h0")):
        expected = [wrap(part(a, x_part, first) * part(b, y_part, second) + c, 32) for a, b, c in rows]
        names = [f"%{name}" + (f".{selector}" if selector else "") for name, selector in (("x", x_part), ("y", y_part))]
        body = f"vmad.u32.{first}.{second} %d, {names[0]}, {names[1]}, %z;"
        assert_same(device.evaluate(body, [np.uint32], x, y, z), expected, x, y, z)
