"""Video instructions in random forms, with everything that PTX permits, against Python's integers."""

import operator
import random

import numpy as np
import pytest
from operands import assert_same, operand_tuples, signed, wrap
from virtual_device import kernel

RELATIONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
PLAIN = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
SECONDARY = {"add": lambda a, b: a + b, "min": min, "max": max}
PARTS = {"": (0, 32), **{f".b{k}": (8 * k, 8) for k in range(4)}, ".h0": (0, 16), ".h1": (16, 16)}
SIGNS = ("u32", "s32")


def part(word, selector, type):
    start, bits = PARTS[selector]
    value = word >> start & (1 << bits) - 1
    return signed(value, bits) if type == "s32" else value


def saturate(value, bits, type):
    """Return the value saturated to the type."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type == "s32" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def scalar(rng, op):
    """Return the text of a form, and its reference function of three words."""
    d, a, b = rng.choice(SIGNS), rng.choice(SIGNS), rng.choice(SIGNS)
    mode, reference = "", PLAIN.get(op)
    if op in ("vshl", "vshr"):
        b, mode = "u32", rng.choice([".clamp", ".wrap"])

        def reference(x, y):
            y = y % 32 if mode == ".wrap" else min(y, 32)
            return x << y if op == "vshl" else x >> y
    elif op == "vset":
        d, relation = "u32", rng.choice(list(RELATIONS))
        mode, reference = f".{relation}", lambda x, y: int(RELATIONS[relation](x, y))
    sat = op != "vset" and rng.random() < 0.5
    first_part, second_part = rng.choice(list(PARTS)), rng.choice(list(PARTS))
    third = rng.choice(["", *SECONDARY, "merge"])
    output_part = rng.choice(list(PARTS)[1:]) if third == "merge" else ""
    start, bits = PARTS[output_part]
    types = f".{a}.{b}" if op == "vset" else f".{d}.{a}.{b}"
    modifiers = types + ".sat" * sat + mode + (f".{third}" if third in SECONDARY else "")
    text = f"{op}{modifiers} %d{output_part}, %x{first_part}, %y{second_part}{', %z' if third else ''};"

    def result(x, y, z):
        value_ = reference(part(x, first_part, a), part(y, second_part, b))
        value_ = saturate(value_, bits, d) if sat else value_
        if output_part:
            mask = (1 << bits) - 1 << start
            return z & ~mask | value_ << start & mask
        if third:
            value_ = SECONDARY[third](part(wrap(value_, 32), "", d), part(z, "", d))
        return wrap(value_, 32)

    return text, result


def simd(rng, op, parts):
    """Return the text of a form on halves or bytes, and its reference function of three words."""
    d, a, b = rng.choice(SIGNS), rng.choice(SIGNS), rng.choice(SIGNS)
    letter, bits, reference, mode = "hb"[parts == 4], 32 // parts, PLAIN.get(op), ""
    if op == "vset":
        relation = rng.choice(list(RELATIONS))
        mode, reference = f".{relation}", lambda x, y: int(RELATIONS[relation](x, y))
    accumulates = rng.random() < 0.5
    sat = op != "vset" and not accumulates and rng.random() < 0.5
    picks = [[rng.randrange(2 * parts) for _ in range(parts)] if rng.random() < 0.7 else None for _ in "ab"]
    written_parts = [k for k in range(parts) if rng.random() < 0.7] or [0]
    texts = [
        f".{letter}{''.join(map(str, reversed(positions)))}" if positions else ""
        for positions in (*picks, written_parts)
    ]
    first, second = (positions or list(range(k, k + parts)) for k, positions in ((0, picks[0]), (parts, picks[1])))
    types = f".{a}.{b}" if op == "vset" else f".{d}.{a}.{b}"
    modifiers = types + ".sat" * sat + mode + ".add" * accumulates
    text = f"{op}{parts}{modifiers} %d{texts[2]}, %x{texts[0]}, %y{texts[1]}, %z;"

    def result(x, y, z):
        def lane(number, type):
            value = (x | y << 32) >> number * bits & (1 << bits) - 1
            return signed(value, bits) if type == "s32" else value

        value_ = z
        for k in written_parts:
            value = reference(lane(first[k], a), lane(second[k], b))
            value = saturate(value, bits, d) if sat else value
            mask = (1 << bits) - 1 << k * bits
            value_ = value_ + value if accumulates else value_ & ~mask | value << k * bits & mask
        return wrap(value_, 32)

    return text, result


def product(rng):
    """Return the text of a form of vmad, and its reference function of three words."""
    a, b, sign = rng.choice(SIGNS), rng.choice(SIGNS), rng.choice(["", "a", "b", "c", "po"])
    sat, shift = rng.random() < 0.5, rng.choice([0, 7, 15])
    first_part, second_part = rng.choice(list(PARTS)), rng.choice(list(PARTS))
    modifiers = f".{rng.choice(SIGNS)}.{a}.{b}" + ".po" * (sign == "po") + ".sat" * sat + f".shr{shift}" * (shift > 0)
    signs = ["-" * (sign == operand) for operand in "abc"]
    text = f"vmad{modifiers} %d, {signs[0]}%x{first_part}, {signs[1]}%y{second_part}, {signs[2]}%z;"
    final = "s32" if "s32" in (a, b) or sign in ("a", "b", "c") else "u32"

    def result(x, y, z):
        value_ = part(x, first_part, a) * part(y, second_part, b) * (-1 if sign in ("a", "b") else 1)
        value_ += part(z, "", final) * (-1 if sign == "c" else 1) + (sign == "po")
        return wrap(saturate(value_ >> shift, 32, final) if sat else value_ >> shift, 32)

    return text, result


KINDS = {
    **{op: (lambda rng, op=op: scalar(rng, op)) for op in [*PLAIN, "vset", "vshl", "vshr"] if op != "vavrg"},
    **{f"{op}{n}": (lambda rng, op=op, n=n: simd(rng, op, n)) for op in [*PLAIN, "vset"] for n in (2, 4)},
    "vmad": product,
}


def reorder_qualifiers(rng, text):
    """Return the statement with its qualifiers in another order, in which the types keep theirs."""
    name, operands = text.split(" ", 1)
    op, *qualifiers = name.split(".")
    types = iter([qualifier for qualifier in qualifiers if qualifier in SIGNS])
    rng.shuffle(qualifiers)
    return (
        ".".join([op, *(next(types) if qualifier in SIGNS else qualifier for qualifier in qualifiers)]) + " " + operands
    )


@pytest.mark.parametrize("op", KINDS)
def test_random_forms_agree_with_the_reference(device, op):
    rng = random.Random(op)
    x, y, z = operand_tuples("b32", 3, 200)
    keep = np.random.default_rng(0).permutation(len(x))[:150]
    x, y, z = x[keep], y[keep], z[keep]
    for _ in range(16):
        text, reference = KINDS[op](rng)
        text = reorder_qualifiers(rng, text)
        expected = [reference(*row) for row in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
        value_ = device.evaluate(text, [np.uint32], x, y, z)
        try:
            assert_same(value_, expected, x, y, z)
        except AssertionError as error:
            raise AssertionError(f"{text} {error}") from None


REFUSED = """vadd.u32.u32 %r1,%r2,%r3;vadd.u32.u32.u32 %r1,%r2.b4,%r3;vadd.u32.u32.u32 %r1,%r2.h2,%r3
vadd.u32.u32.u32.add %r1,%r2,%r3;vadd.u32.u32.u32 %r1.h0,%r2,%r3;vadd.u32.u32.u32.add %r1.h0,%r2,%r3,%r4
vshl.u32.u32.u32 %r1,%r2,%r3;vset.u32.u32 %r1,%r2,%r3;vshl.u32.u32.s32.clamp %r1,%r2,%r3
vset.u32.u32.sat.eq %r1,%r2,%r3;vadd2.u32.u32.u32.min %r1,%r2,%r3,%r4;vavrg.u32.u32.u32 %r1,%r2,%r3
vadd2.u32.u32.u32 %r1,%r2,%r3;vadd2.u32.u32.u32 %r1,%r2.h4,%r3,%r4;vadd4.u32.u32.u32 %r1.b02,%r2,%r3,%r4
vmad.u32.u32.u32 %r1,-%r2,%r3,-%r4;vmad.u32.u32.u32.po %r1,-%r2,%r3,%r4;vmad.u32.u32.u32.shr8 %r1,%r2,%r3,%r4
vadd.u32.u32.u32 5,%r2,%r3;vadd.f32.u32.u32 %r1,%r2,%r3;vadd.u32.u32.u32 %r1,-%r2,%r3
vadd2.u32.u32.u32.sat.add %r1,%r2,%r3,%r4"""


def test_invalid_video_instructions_are_refused(device):
    accepted = []
    for text in REFUSED.replace("\n", ";").split(";"):
        code, module = device.load(kernel(f"{text};", ["p0"]))
        if code == 0 and device.function(module)[0] == 0:
            accepted.append(text)
    assert not accepted
