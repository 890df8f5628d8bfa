"""Floating point that is exact: PTX ISA, "Floating Point Instructions" and "Half Precision", and comparisons."""

from fuzzing.forms import form, halves, joined
from fuzzing.integers import COMBINED
from fuzzing.reals import Format, add, compare, divide, multiply, negated, root, rounded, smaller

FORMAT = {name: Format(name) for name in ("f16", "bf16", "f32", "f64")}
MODES = ["rn", "rz", "rm", "rp"]
EXACT = {"takes_any_nan": True}


def exactly(of):
    """With nothing behind the number."""
    return lambda *xs, mode: (of(*xs, mode), False)


OPERATIONS = {
    "add": (2, exactly(add)),
    "sub": (2, exactly(lambda x, y, mode: add(x, negated(y), mode))),
    "mul": (2, exactly(lambda x, y, mode: multiply(x, y))),
    "fma": (3, exactly(lambda x, y, z, mode: add(multiply(x, y), z, mode))),
    "div": (2, lambda x, y, mode: divide(x, y)),
    "rcp": (1, lambda x, mode: divide((False, 1, 0), x)),
    "sqrt": (1, lambda x, mode: root(x)),
}


def operation(type, op, mode="rn", ftz=False, sat=False, relu=False):
    format, of = FORMAT[type], OPERATIONS[op][1]

    def result(*operands):
        numbers = [format.number(format.flush(one) if ftz else one) for one in operands]
        number, more = of(*numbers, mode=mode)
        return rounded(format, number, mode, more, ftz, sat, relu)

    return result


def words(ftz=False, sat=False):
    return (".ftz" if ftz else "") + (".sat" if sat else "")


def arithmetic(type):
    """Of single and double precision, in each rounding."""
    for op, (arity, _) in OPERATIONS.items():
        for ftz in (False, True) if type == "f32" else (False,):
            for sat in (False, True) if type == "f32" and op in ("add", "sub", "mul", "fma") else (False,):
                for mode in MODES:
                    of = operation(type, op, mode, ftz, sat)
                    names = [op, "mad"] if op == "fma" else [op]
                    for name in names:
                        text = f"{name}.{mode}{words(ftz, sat)}.{type}"
                        yield form(text, type, " ".join([type] * arity), of, **EXACT)


def signs(type):
    """neg, abs and copysign; what they make of a NaN is left open."""
    format = FORMAT[type]
    for ftz in (False, True) if type in ("f16", "f32") else (False,):
        for op in ("neg", "abs"):

            def result(a, ftz=ftz, op=op):
                if format.is_nan(a):
                    return format.any_nan
                a = format.flush(a) if ftz else a
                return a ^ format.sign if op == "neg" else a & format.sign - 1

            yield form(f"{op}{words(ftz)}.{type}", type, type, result, **EXACT)
    if format.sign.bit_length() > 16:
        yield form(f"copysign.{type}", type, f"{type} {type}", lambda a, b: a & format.sign | b & format.sign - 1)


def limits(type):
    """min and max, which take a number before a NaN, or with .NaN a NaN before a number."""
    format = FORMAT[type]
    for op in ("min", "max"):
        for ftz in (False, True) if type in ("f16", "f32") else (False,):
            for nan in (False, True) if type != "f64" else (False,):

                def result(a, b, op=op, ftz=ftz, nan=nan):
                    a, b = (format.flush(one) if ftz else one for one in (a, b))
                    return smaller(format, a, b, op == "max", nan)

                def joined_signs(a, b, result=result):
                    made = result(a & format.sign - 1, b & format.sign - 1)
                    return made if format.is_nan(made) else made | (a ^ b) & format.sign

                text = f"{op}{words(ftz)}{'.NaN' if nan else ''}"
                yield form(f"{text}.{type}", type, f"{type} {type}", result, **EXACT)
                if type != "f64":
                    yield form(f"{text}.xorsign.abs.{type}", type, f"{type} {type}", joined_signs)


def half_arithmetic(type):
    ftz_too = (False, True) if type == "f16" else (False,)
    for op in ("add", "sub", "mul", "fma"):
        arity = OPERATIONS[op][0]
        for ftz in ftz_too:
            for sat in ftz_too:
                of = operation(type, op, "rn", ftz, sat)
                yield form(f"{op}.rn{words(ftz, sat)}.{type}", type, " ".join([type] * arity), of, **EXACT)
    for ftz in ftz_too:
        of = operation(type, "fma", "rn", ftz, relu=True)
        yield form(f"fma.rn{words(ftz)}.relu.{type}", type, f"{type} {type} {type}", of, **EXACT)


def each_half(one, type):
    """The same on both halves of a register."""

    def of(*pairs):
        parts = [one.of(*operands) for operands in zip(*map(halves, pairs), strict=True)]
        return joined(parts) if all(isinstance(part, int) for part in parts) else None

    assert one.name.endswith(f".{type}")
    return form(f"{one.name}x2", f"{type}x2", " ".join([f"{type}x2"] * len(one.ins)), of)


def kinds(type):
    format = FORMAT[type]

    def exponent(a):
        return a & format.infinite

    tests = {
        "finite": lambda a: exponent(a) != format.infinite,
        "infinite": lambda a: a & format.sign - 1 == format.infinite,
        "number": lambda a: not format.is_nan(a),
        "notanumber": format.is_nan,
        "normal": lambda a: a & format.sign - 1 == 0 or 0 < exponent(a) < format.infinite,
        "subnormal": lambda a: exponent(a) == 0 and a & format.sign - 1 != 0,
    }
    for word, of in tests.items():
        yield form(f"testp.{word}.{type}", "pred", type, lambda a, of=of: int(of(a)), **EXACT)


ORDERED = {
    "eq": lambda way: way == 0,
    "ne": lambda way: way in (-1, 1),
    "lt": lambda way: way == -1,
    "le": lambda way: way in (-1, 0),
    "gt": lambda way: way == 1,
    "ge": lambda way: way in (0, 1),
    "num": lambda way: way is not None,
    "nan": lambda way: way is None,
}
RELATIONS = {
    **ORDERED,
    **{f"{name}u": lambda way, of=of: way is None or of(way) for name, of in ORDERED.items() if len(name) == 2},
}


def relation(type, name, ftz):
    format = FORMAT[type]

    def holds(a, b):
        if ftz:
            a, b = format.flush(a), format.flush(b)
        return int(RELATIONS[name](compare(format, a, b)))

    return holds


def flushes(type):
    return (False, True) if type in ("f16", "f32") else (False,)


def comparisons(type):
    """setp with one and two results, alone and with another predicate, and set into all types."""
    two = f"{type} {type}"
    for name in RELATIONS:
        for ftz in flushes(type):
            holds = relation(type, name, ftz)
            flush = words(ftz)
            yield form(f"setp.{name}{flush}.{type}", "pred", two, holds, **EXACT)
            if FORMAT[type].sign.bit_length() > 16:
                yield form(
                    f"setp.{name}{flush}.{type}",
                    "pred pred",
                    two,
                    lambda a, b, of=holds: (of(a, b), 1 - of(a, b)),
                    **EXACT,
                )
            for word, join in COMBINED.items():
                yield form(
                    f"setp.{name}.{word}{flush}.{type}",
                    "pred",
                    f"{two} pred",
                    lambda a, b, c, of=holds, join=join: join(of(a, b), c),
                    **EXACT,
                )
            for into, yes in SET[type].items():
                yield form(
                    f"set.{name}{flush}.{into}.{type}", into, two, lambda a, b, of=holds, y=yes: y * of(a, b), **EXACT
                )


ONES = {"u32": 0xFFFFFFFF, "s32": -1, "f32": 0x3F800000}
HALVES = {"u16": 0xFFFF, "s16": -1}
SET = {
    "f32": ONES,
    "f64": ONES,
    "f16": {"u32": ONES["u32"], "s32": -1, **HALVES, "f16": 0x3C00},
    "bf16": {"u32": ONES["u32"], "s32": -1, **HALVES, "bf16": 0x3F80},
}


def pair_comparisons(type):
    """Each half by itself: into a predicate each, or into a half of the result."""
    pair = f"{type}x2"
    one = {"f16": 0x3C00, "bf16": 0x3F80}[type]
    for name in RELATIONS:
        for ftz in flushes(type):
            holds = relation(type, name, ftz)

            def both(a, b, of=holds):
                return tuple(of(x, y) for x, y in zip(halves(a), halves(b), strict=True))

            yield form(f"setp.{name}{words(ftz)}.{pair}", "pred pred", f"{pair} {pair}", both)
            for word, join in COMBINED.items():
                yield form(
                    f"setp.{name}.{word}{words(ftz)}.{pair}",
                    "pred pred",
                    f"{pair} {pair} pred",
                    lambda a, b, c, of=both, join=join: tuple(join(bit, c) for bit in of(a, b)),
                )
            yield form(
                f"set.{name}{words(ftz)}.{pair}.{pair}",
                pair,
                f"{pair} {pair}",
                lambda a, b, of=both: joined([one * bit for bit in of(a, b)]),
            )


def selections():
    format = FORMAT["f32"]
    for type in ("b16", "b32", "b64"):
        for ftz in (False, True):

            def chosen(a, b, c):
                return a if not format.is_nan(c) and (c & format.sign == 0 or c & format.sign - 1 == 0) else b

            def flushed(a, b, c, of=chosen):
                return of(a, b, format.flush(c))

            yield form(f"slct{words(ftz)}.{type}.f32", type, f"{type} {type} f32", flushed if ftz else chosen)


def families():
    half = [one for type in ("f16", "bf16") for make in (half_arithmetic, signs, limits) for one in make(type)]
    pairs = [each_half(one, type) for type in ("f16", "bf16") for one in half if one.name.endswith(f".{type}")]
    return {
        "single precision": list(arithmetic("f32")),
        "double precision": list(arithmetic("f64")),
        "signs and limits": [one for type in ("f32", "f64") for make in (signs, limits) for one in make(type)],
        "half precision": half,
        "half precision in pairs": pairs,
        "kinds of floats": [*kinds("f32"), *kinds("f64"), *selections()],
        "float comparisons": [one for type in FORMAT for one in comparisons(type)],
        "comparisons of pairs": [*pair_comparisons("f16"), *pair_comparisons("bf16")],
    }
