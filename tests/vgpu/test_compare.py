"""setp, set, selp and slct: all relations, types and combinations, against Python's comparisons."""

import numpy as np
import pytest
from exact import NOT_A_NUMBER, Real
from operands import FORMATS, assert_same, operand_tuples, signed, size, unsigned

ORDERED = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINATIONS = {"and": lambda p, q: p and q, "or": lambda p, q: p or q, "xor": lambda p, q: p != q}
INTEGERS = ["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"]


def key(type, bits, ftz=False):
    """Return the number to compare, or None for a NaN."""
    if type not in FORMATS:
        return signed(bits, 8 * size(type)) if type[0] == "s" else bits
    real = Real(type)
    bits = real.flushed(bits) if ftz else bits
    if real.value(bits)[1] == NOT_A_NUMBER:
        return None
    return -(bits & real.sign - 1) if bits & real.sign else bits


def holds(relation, a, b):
    """Return whether the relation holds."""
    relation = UNSIGNED.get(relation, relation)
    nan = a is None or b is None
    if relation in ("num", "nan"):
        return nan == (relation == "nan")
    if relation in ORDERED:
        return not nan and ORDERED[relation](a, b)
    return nan or ORDERED[relation[:2]](a, b)  # unordered relations, such as ltu


def relations(type):
    """Return the relations of the type."""
    if type in FORMATS:
        return [*ORDERED, "num", "nan", "equ", "neu", "ltu", "leu", "gtu", "geu"]
    return ["eq", "ne"] if type[0] == "b" else [*ORDERED, *(UNSIGNED if type[0] == "u" else [])]


def answers(relation, type, x, y, ftz=False):
    """Return whether the relation holds for each pair."""
    keys = ([key(type, bits, ftz) for bits in column.tolist()] for column in (x, y))
    return np.array([holds(relation, a, b) for a, b in zip(*keys, strict=True)])


def evaluate_predicates(device, text, x, y, z=None):
    """Return both predicates of a setp, as 0 or 1; %p2 says whether z is not zero."""
    body = f"setp.ne.u32 %p2, %z, 0; {text} selp.u32 %d, 1, 0, %p0; selp.u32 %e, 1, 0, %p1;"
    return device.evaluate(body, [np.uint32] * 2, x, y, np.zeros(len(x), np.uint32) if z is None else z)


@pytest.mark.parametrize("type", [*INTEGERS, *FORMATS])
def test_relations(device, type):
    x, y = operand_tuples(type, 2, 1500)
    for relation in relations(type):
        expected = answers(relation, type, x, y)
        p, q = evaluate_predicates(device, f"setp.{relation}.{type} %p0|%p1, %x, %y;", x, y)
        assert_same(p, expected.astype(np.uint32), x, y)
        assert_same(q, 1 - p, x, y)
        if type == "f32" or type == "f16":
            p, _ = evaluate_predicates(device, f"setp.{relation}.ftz.{type} %p0|%p1, %x, %y;", x, y)
            assert_same(p, answers(relation, type, x, y, ftz=True).astype(np.uint32), x, y)


@pytest.mark.parametrize("negated", ["", "!"])
@pytest.mark.parametrize("type", ["s32", "u64", "f32", "f64", "f16", "bf16"])
def test_combined_with_another_predicate(device, type, negated):
    x, y = operand_tuples(type, 2, 1000, seed=1)
    z = np.random.default_rng(0).integers(0, 2, len(x)).astype(np.uint32)
    predicates = (z != 0) != bool(negated)
    comparisons = answers("lt", type, x, y)
    for name, combine in COMBINATIONS.items():
        p, q = evaluate_predicates(device, f"setp.lt.{name}.{type} %p0|%p1, %x, %y, {negated}%p2;", x, y, z)
        assert_same(
            p,
            np.array([combine(a, b) for a, b in zip(comparisons, predicates, strict=True)]).astype(np.uint32),
            x,
            y,
            z,
        )
        assert_same(
            q,
            np.array([combine(not a, b) for a, b in zip(comparisons, predicates, strict=True)]).astype(np.uint32),
            x,
            y,
            z,
        )


@pytest.mark.parametrize("type", [*INTEGERS, *FORMATS])
@pytest.mark.parametrize("into", ["u32", "s32", "f32", "f16", "bf16"])
def test_set(device, into, type):
    if (into, type) in [("f32", "f16"), ("f32", "bf16"), ("f16", "bf16")]:
        pytest.skip("PTX has no such comparison")
    x, y = operand_tuples(type, 2, 800, seed=2)
    true_value = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(into, 0xFFFFFFFF)
    z = np.random.default_rng(0).integers(0, 2, len(x)).astype(np.uint32)
    relation = relations(type)[-1]
    expected = answers(relation, type, x, y)
    names = [unsigned(into)]
    assert_same(
        device.evaluate(f"set.{relation}.{into}.{type} %d, %x, %y;", names, x, y),
        np.where(expected, true_value, 0),
        x,
        y,
    )
    body = f"setp.ne.u32 %p0, %z, 0; set.{relation}.xor.{into}.{type} %d, %x, %y, !%p0;"
    assert_same(device.evaluate(body, names, x, y, z), np.where(expected != (z == 0), true_value, 0), x, y, z)


def test_set_with_16_bit_results_from_halves(device):
    """set with a 16-bit integer result, such as set.gt.u16.f16, gives 0xFFFF."""
    for type in ("f16", "bf16"):
        x, y = operand_tuples(type, 2, 800)
        expected = np.where(answers("gt", type, x, y), 0xFFFF, 0).astype(np.uint16)
        for into in ("u16", "s16"):
            assert_same(device.evaluate(f"set.gt.{into}.{type} %d, %x, %y;", [np.uint16], x, y), expected, x, y)


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_pairs_of_halves(device, type):
    x, y = operand_tuples(type, 2, 1500, seed=3)
    a, b = (column[: len(column) // 2 * 2].view(np.uint32) for column in (x, y))
    for relation in relations(type):
        expected = answers(relation, type, x, y)[: 2 * len(a)]
        p, q = evaluate_predicates(device, f"setp.{relation}.{type}x2 %p0|%p1, %x, %y;", a, b)
        assert_same(p, expected[::2].astype(np.uint32), a, b)
        assert_same(q, expected[1::2].astype(np.uint32), a, b)
        true_value = 0x3C00 if type == "f16" else 0x3F80
        result = device.evaluate(f"set.{relation}.{type}x2.{type}x2 %d, %x, %y;", [np.uint32], a, b)
        assert_same(result, np.where(expected, true_value, 0).astype(np.uint16).view(np.uint32), a, b)


@pytest.mark.parametrize("type", [*INTEGERS, "f32", "f64"])
def test_selp_and_slct(device, type):
    x, y = operand_tuples(type, 2)
    (z,) = operand_tuples("f32", 1, len(x))
    z = z[: len(x)]
    result = device.evaluate(f"setp.gt.s32 %p0, %z, 7; selp.{type} %d, %x, %y, %p0;", [unsigned(type)], x, y, z)
    assert_same(result, np.where(z.view(np.int32) > 7, x, y), x, y, z)
    assert_same(
        device.evaluate(f"slct.{type}.s32 %d, %x, %y, %z;", [unsigned(type)], x, y, z),
        np.where(z.view(np.int32) >= 0, x, y),
        z,
    )
    number = z.view(np.float32)
    result = device.evaluate(f"slct.{type}.f32 %d, %x, %y, %z;", [unsigned(type)], x, y, z)
    assert_same(result, np.where(number >= 0, x, y), x, y, z)  # a NaN selects the second operand
    result = device.evaluate(f"slct.ftz.{type}.f32 %d, %x, %y, %z;", [unsigned(type)], x, y, z)
    small = np.abs(number) < np.finfo(np.float32).tiny
    assert_same(result, np.where((number >= 0) | small, x, y), x, y, z)
