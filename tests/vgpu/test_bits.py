"""Bit fields, counts, permutations, funnel shifts and carry chains, against lists of bits and Python's integers."""

import random

import numpy as np
import pytest
from operands import assert_same, operand_tuples, signed, size, unsigned, wrap


def bits_of(value, bits):
    """Return the bits of the value, the lowest first."""
    return [value >> k & 1 for k in range(bits)]


def number(bits):
    """Return the number with these bits, the lowest first."""
    return sum(bit << k for k, bit in enumerate(bits))


def columns_with_fields(type, arity):
    """Return operands of the type, and positions and lengths of bit fields, some of them beyond the operand."""
    columns = operand_tuples(type, arity, 6000)
    rng = np.random.default_rng(1)
    near = [0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 255, 256, 257, (1 << 32) - 1]
    fields = [
        np.where(
            rng.random(len(columns[0])) < 0.5,
            rng.choice(near, len(columns[0])),
            rng.integers(0, 70, len(columns[0])),
        ).astype(np.uint32)
        for _ in range(2)
    ]
    return columns, fields


def extracted(value, start, length, type):
    """Return the result of bfe."""
    bits = 8 * size(type)
    start, length, source = start & 255, length & 255, bits_of(value, bits)
    if length == 0:
        return 0
    fill = source[min(start + length - 1, bits - 1)] if type[0] == "s" else 0
    return number([source[start + k] if k < length and start + k < bits else fill for k in range(bits)])


def inserted(field, target, start, length, bits):
    """Return the result of bfi."""
    target_bits, source = bits_of(target, bits), bits_of(field, bits)
    for k in range(min(length & 255, bits)):
        if (start & 255) + k < bits:
            target_bits[(start & 255) + k] = source[k]
    return number(target_bits)


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_extract(device, type):
    (x,), (y, z) = columns_with_fields(type, 1)
    expected = [extracted(a, b, c, type) for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
    assert_same(device.evaluate(f"bfe.{type} %d, %x, %y, %z;", [unsigned(type)], x, y, z), expected, x, y, z)


@pytest.mark.parametrize("type", ["b32", "b64"])
def test_insert(device, type):
    (x, y), (z, w) = columns_with_fields(type, 2)
    expected = [
        inserted(*row, 8 * size(type)) for row in zip(x.tolist(), y.tolist(), z.tolist(), w.tolist(), strict=True)
    ]
    assert_same(device.evaluate(f"bfi.{type} %d, %x, %y, %z, %w;", [unsigned(type)], x, y, z, w), expected, x, y, z, w)


def highest(value, type, shift):
    """Return the result of bfind."""
    bits = 8 * size(type)
    if type[0] == "s" and signed(value, bits) < 0:
        value = wrap(~value, bits)
    position = value.bit_length() - 1
    return wrap(position, 32) if position < 0 else bits - 1 - position if shift else position


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bfind(device, type):
    (x,) = operand_tuples(type, 1, 8000)
    for modifier, shift in (("", False), (".shiftamt", True)):
        expected = [highest(a, type, shift) for a in x.tolist()]
        assert_same(device.evaluate(f"bfind{modifier}.{type} %d, %x;", [np.uint32], x), expected, x)


@pytest.mark.parametrize("type", ["b32", "b64"])
def test_popc_clz_and_brev(device, type):
    (x,) = operand_tuples(type, 1, 8000)
    bits = 8 * size(type)
    assert_same(device.evaluate(f"popc.{type} %d, %x;", [np.uint32], x), [a.bit_count() for a in x.tolist()], x)
    assert_same(device.evaluate(f"clz.{type} %d, %x;", [np.uint32], x), [bits - a.bit_length() for a in x.tolist()], x)
    assert_same(
        device.evaluate(f"brev.{type} %d, %x;", [unsigned(type)], x),
        [number(bits_of(a, bits)[::-1]) for a in x.tolist()],
        x,
    )


# The selectors of each mode, the highest byte first, for the four values of c's low bits.
MODES = {
    "f4e": "3210 4321 5432 6543",
    "b4e": "5670 6701 7012 0123",
    "rc8": "0000 1111 2222 3333",
    "ecl": "3210 3211 3222 3333",
    "ecr": "0000 1110 2210 3210",
    "rc16": "1010 3232 1010 3232",
}


@pytest.mark.parametrize("mode", ["", *MODES])
def test_prmt(device, mode):
    x, y, z = operand_tuples("b32", 3)

    def permuted(a, b, c):
        source = (a | b << 32).to_bytes(8, "little")
        if mode:
            chosen = [int(digit) for digit in reversed(MODES[mode].split()[c & 3])]
        else:
            chosen = [c >> 4 * k & 15 for k in range(4)]
        bytes_ = [source[selector & 7] if selector < 8 else 255 * (source[selector & 7] >> 7) for selector in chosen]
        return int.from_bytes(bytes(bytes_), "little")

    expected = [permuted(*row) for row in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
    text = f"prmt.b32{'.' + mode if mode else ''} %d, %x, %y, %z;"
    assert_same(device.evaluate(text, [np.uint32], x, y, z), expected, x, y, z)


def test_lop3(device):
    x, y, z = operand_tuples("b32", 3, 500)
    for table in range(256):
        expected = np.zeros(len(x), np.uint32)
        for k in range(8):
            if table >> k & 1:
                expected |= (x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z)
        assert_same(device.evaluate(f"lop3.b32 %d, %x, %y, %z, {table:#x};", [np.uint32], x, y, z), expected, x, y, z)


@pytest.mark.parametrize("word", ["and", "or"])
def test_lop3_with_a_predicate(device, word):
    """The predicate says whether any bit is set, combined with another predicate; the result may be `_`."""
    x, y, z = operand_tuples("b32", 3, 500)
    x[::3], y[::3] = z[::3], 0
    q = np.arange(len(x), dtype=np.uint32) % 2
    body = f"""setp.ne.u32 %p0, %w, 0; lop3.{word}.b32 %d|%p1, %x, %y, %z, 0x12, !%p0; selp.b32 %e, 1, 0, %p1;
    lop3.{word}.b32 _|%p2, %x, %y, %z, 0x12, %p0; selp.b32 %f, 1, 0, %p2;"""
    d, e, f = device.evaluate(body, [np.uint32] * 3, x, y, z, q)
    expected = (x & ~y & ~z) | (~x & ~y & z)
    assert 0 < (expected == 0).sum() < len(x)
    join = np.logical_and if word == "and" else np.logical_or
    assert_same(d, expected, x, y, z)
    assert_same(e, join(expected != 0, q == 0).astype(np.uint32), x, y, z, q)
    assert_same(f, join(expected != 0, q == 1).astype(np.uint32), x, y, z, q)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_szext(device, mode):
    (x,), (y, _) = columns_with_fields("b32", 1)

    def extended(value, count, is_signed):
        count = count % 32 if mode == "wrap" else min(count, 32)
        low = bits_of(value, 32)[:count]
        return number(low + [low[-1] if low and is_signed else 0] * (32 - count))

    for type in ("u32", "s32"):
        expected = [extended(a, b, type == "s32") for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert_same(device.evaluate(f"szext.{mode}.{type} %d, %x, %y;", [np.uint32], x, y), expected, x, y)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bmsk(device, mode):
    _, (x, y) = columns_with_fields("b32", 1)

    def mask(start, count):
        start, count = ((a % 32 if mode == "wrap" else min(a, 32)) for a in (start, count))
        return number([start <= k < start + count for k in range(32)])

    expected = [mask(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert_same(device.evaluate(f"bmsk.{mode}.b32 %d, %x, %y;", [np.uint32], x, y), expected, x, y)


def test_fns(device):
    (x,) = operand_tuples("b32", 1, 6000)
    rng = np.random.default_rng(3)
    base = rng.integers(0, 32, len(x)).astype(np.uint32)
    n = rng.integers(-6, 7, len(x)).astype(np.int32)

    def place(value, start, count):
        positions = [k for k in range(32) if value >> k & 1 and (k == start or (k - start) * count > 0)]
        positions = positions if count > 0 else positions[::-1]
        if count == 0:
            positions = [k for k in positions if k == start]
        return positions[max(abs(count) - 1, 0)] if len(positions) > max(abs(count) - 1, 0) else 0xFFFFFFFF

    expected = [place(*row) for row in zip(x.tolist(), base.tolist(), n.tolist(), strict=True)]
    assert len(set(expected)) == 33
    assert_same(device.evaluate("fns.b32 %d, %x, %y, %z;", [np.uint32], x, base, n), expected, x, base)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("way", ["l", "r"])
def test_shf(device, way, mode):
    (x, y), (z, _) = columns_with_fields("b32", 2)

    def shifted(low, high, shift):
        shift = shift % 32 if mode == "wrap" else min(shift, 32)
        double_word = low | high << 32
        return double_word << shift >> 32 & 0xFFFFFFFF if way == "l" else double_word >> shift & 0xFFFFFFFF

    expected = [shifted(*row) for row in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
    assert_same(device.evaluate(f"shf.{way}.{mode}.b32 %d, %x, %y, %z;", [np.uint32], x, y, z), expected, x, y, z)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_additions_with_carry(device, op, bits):
    """Sums of two words have double width, and a third word takes the carry."""
    x, y, z, w = operand_tuples(f"u{bits}", 4)
    body = f"{op}.cc.u{bits} %d, %x, %z; {op}c.cc.u{bits} %e, %y, %w; {op}c.u{bits} %f, 0, 0;"
    d, e, f = device.evaluate(body, [unsigned(f"u{bits}")] * 3, x, y, z, w)
    rows = zip(x.tolist(), y.tolist(), z.tolist(), w.tolist(), strict=True)
    sign = 1 if op == "add" else -1
    expected = [wrap((a | b << bits) + sign * (c | k << bits), 3 * bits) for a, b, c, k in rows]
    for word, offset in ((d, 0), (e, bits), (f, 2 * bits)):
        assert_same(word, [wrap(total >> offset, bits) for total in expected], x, y, z, w)


@pytest.mark.parametrize("bits", [32, 64])
def test_products_with_carry(device, bits):
    """A product of double width is added to a number of two words."""
    x, y, z, w = operand_tuples(f"u{bits}", 4)
    t = f"u{bits}"
    body = f"mad.lo.cc.{t} %d, %x, %y, %z; madc.hi.cc.{t} %e, %x, %y, %w; addc.{t} %f, 0, 0;"
    d, e, f = device.evaluate(body, [unsigned(t)] * 3, x, y, z, w)
    expected = [
        a * b + (c | k << bits) for a, b, c, k in zip(x.tolist(), y.tolist(), z.tolist(), w.tolist(), strict=True)
    ]
    for word, offset in ((d, 0), (e, bits), (f, 2 * bits)):
        assert_same(word, [wrap(total >> offset, bits) for total in expected], x, y, z, w)


def test_carries_of_guarded_lanes(device):
    """A lane keeps its carry if its guard skips the instruction."""
    x = np.array([random.Random(k).getrandbits(32) for k in range(512)], np.uint32)
    body = """mov.u32 %d, 0; and.b32 %r1, %x, 1; setp.ne.u32 %p0, %r1, 0; add.cc.u32 %r2, 0xffffffff, %r1;
    @!%p0 add.cc.u32 %r2, 0xffffffff, 1; @%p0 add.cc.u32 %r2, 0, 0; addc.u32 %d, 0, 0;"""
    assert_same(device.evaluate(body, [np.uint32], x), 1 - (x & 1), x)
