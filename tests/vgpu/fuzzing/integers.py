"""Forms of integer arithmetic, logic, bit fields and carry chains: PTX ISA, "Integer Arithmetic", "Logic and Shift".

A form is an instruction with types of operands, and a Python function that computes its result (forms.form).
"""

from fuzzing.forms import Form, form, halves, joined, to_signed, wrap

# Types of registers: all integers, signed integers, untyped bits.
WORDS = ["u16", "u32", "u64", "s16", "s32", "s64"]
SIGNED = ["s16", "s32", "s64"]
BITS = ["b16", "b32", "b64"]


def width(type):
    """Return the number of bits of a type."""
    return int(type[1:])


def double_width(type):
    """Return the type of twice the width."""
    return f"{type[0]}{2 * width(type)}"


def clamp(value, type):
    """Return the nearest value of the type."""
    bits = width(type)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def quotient(a, b):
    """Return the quotient, rounded to zero; None for a division by zero."""
    if b == 0:
        return None  # "an unspecified, machine-specific value"
    magnitude = abs(a) // abs(b)
    return -magnitude if (a < 0) != (b < 0) else magnitude


def remainder(a, b):
    """Return the remainder with the sign of the dividend."""
    return None if b == 0 else a - b * quotient(a, b)


def low24(value, type):
    """Return the number that the low 24 bits stand for."""
    return to_signed(wrap(value, 24), 24) if type[0] == "s" else wrap(value, 24)


def arithmetic(type):
    """Yield add, sub, mul, mad, div, rem, min, max and others of a type."""
    bits = width(type)
    binary = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: a * b >> bits,
        "div": quotient,
        "rem": remainder,
        "min": min,
        "max": max,
    }
    forms = [form(f"{op}.{type}", type, f"{type} {type}", reference) for op, reference in binary.items()]
    ternary = {
        "mad.lo": lambda a, b, c: a * b + c,
        "mad.hi": lambda a, b, c: (a * b >> bits) + c,
        "sad": lambda a, b, c: c + abs(a - b),
    }
    forms += [form(f"{op}.{type}", type, f"{type} {type} {type}", reference) for op, reference in ternary.items()]
    if bits < 64:
        wide_type = double_width(type)
        forms.append(form(f"mul.wide.{type}", wide_type, f"{type} {type}", lambda a, b: a * b))
        forms.append(form(f"mad.wide.{type}", wide_type, f"{type} {type} {wide_type}", lambda a, b, c: a * b + c))
    if type[0] == "s":
        forms.append(form(f"neg.{type}", type, type, lambda a: -a))
        forms.append(form(f"abs.{type}", type, type, abs))
    return forms


def saturating():
    """Yield additions and products with .sat."""
    for op, reference in (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b)):
        yield form(f"{op}.sat.s32", "s32", "s32 s32", lambda a, b, reference=reference: clamp(reference(a, b), "s32"))
    yield form("mad.hi.sat.s32", "s32", "s32 s32 s32", lambda a, b, c: clamp((a * b >> 32) + c, "s32"))
    yield form(
        "mad24.hi.sat.s32",
        "s32",
        "s32 s32 s32",
        lambda a, b, c: clamp((low24(a, "s32") * low24(b, "s32") >> 16) + c, "s32"),
    )


def products24(type):
    """Yield mul24 and mad24."""

    def product(a, b):
        return low24(a, type) * low24(b, type)

    yield form(f"mul24.lo.{type}", type, f"{type} {type}", product)
    yield form(f"mul24.hi.{type}", type, f"{type} {type}", lambda a, b: product(a, b) >> 16)
    yield form(f"mad24.lo.{type}", type, f"{type} {type} {type}", lambda a, b, c: product(a, b) + c)
    yield form(f"mad24.hi.{type}", type, f"{type} {type} {type}", lambda a, b, c: (product(a, b) >> 16) + c)


def pairs():
    """Yield instructions on pairs of 16-bit integers."""
    for type in ("u16x2", "s16x2"):
        signed = type[0] == "s"
        for op, reference in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
            yield form(
                f"{op}.{type}",
                type,
                f"{type} {type}",
                lambda a, b, reference=reference, signed=signed: joined(
                    [reference(p, q) for p, q in zip(halves(a, signed=signed), halves(b, signed=signed), strict=True)]
                ),
            )


def relu():
    """Yield min and max with .relu."""
    for op, reference in (("min", min), ("max", max)):
        yield form(f"{op}.relu.s32", "s32", "s32 s32", lambda a, b, reference=reference: max(reference(a, b), 0))
        yield form(
            f"{op}.relu.s16x2",
            "s16x2",
            "s16x2 s16x2",
            lambda a, b, reference=reference: joined(
                [max(reference(p, q), 0) for p, q in zip(halves(a, signed=True), halves(b, signed=True), strict=True)]
            ),
        )


def dot_products():
    """Yield dp4a and dp2a."""
    for first in ("u32", "s32"):
        for second in ("u32", "s32"):
            into = "s32" if "s32" in (first, second) else "u32"

            def dot4(a, b, c, f=first[0] == "s", s=second[0] == "s"):
                parts = zip(halves(a, 8, 4, f), halves(b, 8, 4, s), strict=True)
                return c + sum(p * q for p, q in parts)

            def dot2(a, b, c, at=0, f=first[0] == "s", s=second[0] == "s"):
                parts = zip(halves(a, 16, 2, f), halves(b, 8, 4, s)[at : at + 2], strict=True)
                return c + sum(p * q for p, q in parts)

            yield form(f"dp4a.{first}.{second}", into, f"{first} {second} {into}", dot4)
            yield form(f"dp2a.lo.{first}.{second}", into, f"{first} {second} {into}", dot2)
            yield form(
                f"dp2a.hi.{first}.{second}", into, f"{first} {second} {into}", lambda a, b, c, d=dot2: d(a, b, c, 2)
            )


def logic():
    """Yield logic and shifts."""
    binary = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
    for type in ("pred", *BITS):
        for op, reference in binary.items():
            yield form(f"{op}.{type}", type, f"{type} {type}", reference)
        yield form(f"not.{type}", type, type, (lambda a: 1 - a) if type == "pred" else (lambda a: ~a))
    for type in BITS:
        bits = width(type)
        yield form(f"cnot.{type}", type, type, lambda a: int(a == 0))
        yield form(f"shl.{type}", type, f"{type} u32", lambda a, by, bits=bits: a << min(by, bits))
    for type in (*BITS, *WORDS):
        yield form(f"shr.{type}", type, f"{type} u32", lambda a, by: a >> min(by, 64))


def leading_zeros(bits):
    """Return the reference function of clz."""
    return lambda a: bits - a.bit_length()


def highest(a):
    """Return the position of the highest bit that differs from the sign."""
    return (a if a >= 0 else ~a).bit_length() - 1


def extracted(a, position, length, bits, signed):
    """Return the bit field at `position`, extended with its sign or with zeros (bfe)."""
    position, length, last_bit = position & 255, length & 255, bits - 1
    sign = a >> min(position + length - 1, last_bit) & 1 if signed and length else 0
    bit_values = [a >> position + k & 1 if k < length and position + k <= last_bit else sign for k in range(bits)]
    return sum(bit << k for k, bit in enumerate(bit_values))


def inserted(a, b, position, length, bits):
    """Return b with its bit field at `position` replaced by the low bits of a (bfi)."""
    position, length = position & 255, length & 255
    for k in range(min(length, max(bits - position, 0))):
        b = b & ~(1 << position + k) | (a >> k & 1) << position + k
    return b


def bit_fields():
    """Yield popc, clz, brev, bfind, bfe and bfi."""
    for type in ("b32", "b64"):
        bits = width(type)
        yield form(f"popc.{type}", "u32", type, int.bit_count)
        yield form(f"clz.{type}", "u32", type, leading_zeros(bits))
        yield form(f"brev.{type}", type, type, lambda a, bits=bits: int(f"{a:0{bits}b}"[::-1], 2))
        yield form(
            f"bfi.{type}",
            type,
            f"{type} {type} u32:0-255 u32:0-255",
            lambda a, b, c, d, bits=bits: inserted(a, b, c, d, bits),
        )
    for type in ("u32", "u64", "s32", "s64"):
        bits, signed = width(type), type[0] == "s"
        yield form(f"bfind.{type}", "u32", type, highest)
        yield form(
            f"bfind.shiftamt.{type}",
            "u32",
            type,
            lambda a, bits=bits: -1 if highest(a) < 0 else bits - 1 - highest(a),
        )
        yield form(
            f"bfe.{type}",
            type,
            f"{type} u32:0-255 u32:0-255",
            lambda a, b, c, bits=bits, signed=signed: extracted(wrap(a, bits), b, c, bits, signed),
        )


def extended(a, length, wraps, signed):
    """Return the low bits of a, extended with their sign or with zeros."""
    length = length & 31 if wraps else min(length, 32)
    low = wrap(a, length)
    return low - (1 << length) if signed and length and low >> length - 1 else low


def mask(start, length, wraps):
    """Return a mask of `length` bits from `start` on (bmsk)."""
    start, length = (number & 31 if wraps else min(number, 32) for number in (start, length))
    return ((1 << length) - 1) << start


def nth_set(bits, base, n):
    """Return the position of the n-th set bit upward from base, or downward for a negative n; -1 if there is none."""
    up, down = range(base, 32), range(base, -1, -1)
    places = [at for at in ([base] if n == 0 else up if n > 0 else down) if bits >> at & 1]
    return places[max(abs(n), 1) - 1] if len(places) >= max(abs(n), 1) else -1


def masks():
    """Yield szext, bmsk and fns."""
    for mode, wraps in (("wrap", True), ("clamp", False)):
        for type in ("u32", "s32"):
            signed = type[0] == "s"
            yield form(
                f"szext.{mode}.{type}", type, f"{type} u32", lambda a, b, w=wraps, s=signed: extended(a, b, w, s)
            )
        yield form(f"bmsk.{mode}.b32", "b32", "b32 b32", lambda a, b, w=wraps: mask(a, b, w))
    yield form("fns.b32", "b32", "b32 =u32:0-31 s32", nth_set)


def permuted(a, b, selectors):
    """Return the bytes that four selectors choose: three bits name a byte, the fourth replicates its sign."""
    all_bytes = a | b << 32
    parts = []
    for selector in selectors:
        byte = all_bytes >> 8 * (selector & 7) & 255
        parts.append((255 if byte >> 7 else 0) if selector & 8 else byte)
    return joined(parts, 8)


# What the modes select, by the low two bits of the third operand; the lowest byte's selector first.
PERMUTATIONS = {
    "f4e": ["0123", "1234", "2345", "3456"],
    "b4e": ["0765", "1076", "2107", "3210"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["0123", "1123", "2223", "3333"],
    "ecr": ["0000", "0111", "0122", "0123"],
    "rc16": ["0101", "2323", "0101", "2323"],
}


def look_up(a, b, c, table):
    """Return lop3 of three operands with a truth table."""
    result = 0
    for k in range(32):
        index = (a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1
        result |= (table >> index & 1) << k
    return result


def funnel(shifts_left, wraps):
    """Return the reference function of shf."""

    def reference(a, b, c):
        shift = c & 31 if wraps else min(c, 32)
        double_word = b << 32 | a
        return (double_word << shift) >> 32 if shifts_left else double_word >> shift

    return reference


def permutations():
    """Yield prmt, lop3 and shf."""
    yield form("prmt.b32", "b32", "b32 b32 b32", lambda a, b, c: permuted(a, b, [c >> 4 * k & 15 for k in range(4)]))
    for mode, rows in PERMUTATIONS.items():
        yield form(
            f"prmt.b32.{mode}",
            "b32",
            "b32 b32 b32",
            lambda a, b, c, rows=rows: permuted(a, b, [int(selector) for selector in rows[c & 3]]),
        )
    yield form("lop3.b32", "b32", "b32 b32 b32 =u32:0-255", look_up)
    for operator, join in (("and", lambda p, q: p & q), ("or", lambda p, q: p | q)):

        def joined_look_up(a, b, c, table, predicate, join=join):
            result = look_up(a, b, c, table)
            return result, join(int(result != 0), predicate)

        yield form(f"lop3.{operator}.b32", "b32 pred", "b32 b32 b32 =u32:0-255 pred", joined_look_up)
    for direction in "lr":
        for mode in ("wrap", "clamp"):
            yield form(f"shf.{direction}.{mode}.b32", "b32", "b32 b32 u32", funnel(direction == "l", mode == "wrap"))


def with_carry(sum_of, bits):
    """Return a reference function for the low bits of a sum and its carry."""

    def reference(*values):
        total = sum_of(*values)
        return wrap(total, bits), total >> bits & 1

    return reference


def chains():
    """Yield additions with carry: a difference is a + ~b + 1, so CC.CF is set if it does not borrow."""
    for type in ("u32", "s32", "u64", "s64"):
        bits = width(type)
        mask = (1 << bits) - 1

        def high(a, b, type=type, bits=bits, mask=mask):
            return (a * b >> bits) & mask

        sums = {
            "add": lambda a, b, cf=0, mask=mask: (a & mask) + (b & mask) + cf,
            "sub": lambda a, b, cf=1, mask=mask: (a & mask) + (~b & mask) + cf,
            "mad.lo": lambda a, b, c, cf=0, mask=mask: (a * b & mask) + (c & mask) + cf,
            "mad.hi": lambda a, b, c, cf=0, mask=mask, high=high: high(a, b) + (c & mask) + cf,
        }
        for op, reference in sums.items():
            ins = " ".join([type] * (3 if op[0] == "m" else 2))
            name, _, suffix = op.partition(".")
            suffix = f".{suffix}" if suffix else ""
            carried = with_carry(reference, bits)
            yield form(f"{name}{suffix}.cc.{type}", type, ins, carried, writes_carry=True)
            yield form(f"{name}c{suffix}.cc.{type}", type, ins, carried, writes_carry=True, reads_carry=True)
            yield form(f"{name}c{suffix}.{type}", type, ins, reference, reads_carry=True)


def moves():
    """Yield mov, selp and slct."""
    for type in ("pred", *BITS):
        yield form(f"mov.{type}", type, type, lambda a: a)
        if type != "pred":
            yield form(f"selp.{type}", type, f"{type} {type} pred", lambda a, b, c: a if c else b)
    for type in ("b16", "b32", "b64"):
        yield form(f"slct.{type}.s32", type, f"{type} {type} s32", lambda a, b, c: a if c >= 0 else b)


RELATIONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED_NAMES = {"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}
COMBINED = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


def comparisons(type, names):
    """Yield setp with one and two results, alone and combined with a predicate, and set."""
    for name, holds in names.items():

        def compare(a, b, holds=holds):
            return int(holds(a, b))

        yield form(f"setp.{name}.{type}", "pred", f"{type} {type}", compare)
        yield form(
            f"setp.{name}.{type}",
            "pred pred",
            f"{type} {type}",
            lambda a, b, reference=compare: (reference(a, b), 1 - reference(a, b)),
        )
        for operator, combine in COMBINED.items():
            yield form(
                f"setp.{name}.{operator}.{type}",
                "pred",
                f"{type} {type} pred",
                lambda a, b, c, reference=compare, join=combine: join(reference(a, b), c),
            )
            yield form(
                f"setp.{name}.{operator}.{type}",
                "pred pred",
                f"{type} {type} pred",
                lambda a, b, c, reference=compare, join=combine: (
                    join(reference(a, b), c),
                    join(1 - reference(a, b), c),
                ),
            )
        yield form(f"set.{name}.u32.{type}", "u32", f"{type} {type}", lambda a, b, reference=compare: -reference(a, b))
        yield form(
            f"set.{name}.f32.{type}",
            "f32",
            f"{type} {type}",
            lambda a, b, reference=compare: 0x3F800000 * reference(a, b),
        )


def integer_comparisons():
    """Yield comparisons of all integer types."""
    for type in BITS:
        yield from comparisons(type, {name: RELATIONS[name] for name in ("eq", "ne")})
    for type in WORDS:
        yield from comparisons(type, RELATIONS)
        if type[0] == "u":
            yield from comparisons(type, {name: RELATIONS[relation] for relation, name in UNSIGNED_NAMES.items()})


def families() -> dict[str, list[Form]]:
    """Return the forms by family; the generator chooses each family with the same probability."""
    return {
        "arithmetic": [instruction for type in WORDS for instruction in arithmetic(type)],
        "saturating": [*saturating(), *pairs(), *relu()],
        "24 bits": [*products24("u32"), *products24("s32")],
        "dot products": list(dot_products()),
        "logic": list(logic()),
        "bit fields": [*bit_fields(), *masks()],
        "permutations": list(permutations()),
        "chains": list(chains()),
        "moves": list(moves()),
        "comparisons": list(integer_comparisons()),
    }
