"""Forms of floating-point instructions and comparisons: PTX ISA, "Floating Point Instructions" and "Half Precision"."""

from fuzzing.forms import form, halves, joined
from fuzzing.integers import COMBINED
from fuzzing.reals import Format, add, compare, divide, multiply, negated, root, rounded, smaller

# A form is an instruction with types of operands, and a Python function that computes its result (forms.form).
# FORMAT: {type: its Format}; MODES: roundings; EXACT: options of a form whose NaN operands may have any bits.
FORMAT = {name: Format(name) for name in ("f16", "bf16", "f32", "f64")}
MODES = ["rn", "rz", "rm", "rp"]
EXACT = {"takes_any_nan": True}


def as_exact(reference):
    """Return an operation with exact results as one that returns (number, is_inexact)."""
    return lambda *xs, mode: (reference(*xs, mode), False)


OPERATIONS = {
    "add": (2, as_exact(add)),
    "sub": (2, as_exact(lambda x, y, mode: add(x, negated(y), mode))),
    "mul": (2, as_exact(lambda x, y, mode: multiply(x, y))),
    "fma": (3, as_exact(lambda x, y, z, mode: add(multiply(x, y), z, mode))),
    "div": (2, lambda x, y, mode: divide(x, y)),
    "rcp": (1, lambda x, mode: divide((False, 1, 0), x)),
    "sqrt": (1, lambda x, mode: root(x)),
}


def operation(type, op, mode="rn", ftz=False, sat=False, relu=False):
    """Return the reference function of an arithmetic instruction."""
    format, reference = FORMAT[type], OPERATIONS[op][1]

    def result(*operands):
        numbers = [format.number(format.flush(bits) if ftz else bits) for bits in operands]
        number, is_inexact = reference(*numbers, mode=mode)
        return rounded(format, number, mode, is_inexact, ftz, sat, relu)

    return result


def modifiers(ftz=False, sat=False):
    """Return the text of the modifiers."""
    return (".ftz" if ftz else "") + (".sat" if sat else "")


def arithmetic(type):
    """Yield the arithmetic of single or double precision, in each rounding."""
    for op, (arity, _) in OPERATIONS.items():
        for ftz in (False, True) if type == "f32" else (False,):
            for sat in (False, True) if type == "f32" and op in ("add", "sub", "mul", "fma") else (False,):
                for mode in MODES:
                    reference = operation(type, op, mode, ftz, sat)
                    names = [op, "mad"] if op == "fma" else [op]
                    for name in names:
                        text = f"{name}.{mode}{modifiers(ftz, sat)}.{type}"
                        yield form(text, type, " ".join([type] * arity), reference, **EXACT)


def signs(type):
    """Yield neg, abs and copysign; the result for a NaN is unspecified."""
    format = FORMAT[type]
    for ftz in (False, True) if type in ("f16", "f32") else (False,):
        for op in ("neg", "abs"):

            def result(a, ftz=ftz, op=op):
                if format.is_nan(a):
                    return format.any_nan
                a = format.flush(a) if ftz else a
                return a ^ format.sign if op == "neg" else a & format.sign - 1

            yield form(f"{op}{modifiers(ftz)}.{type}", type, type, result, **EXACT)
    if format.sign.bit_length() > 16:
        yield form(f"copysign.{type}", type, f"{type} {type}", lambda a, b: a & format.sign | b & format.sign - 1)


def limits(type):
    """Yield min and max, which prefer a number to a NaN, or a NaN to a number with .NaN."""
    format = FORMAT[type]
    for op in ("min", "max"):
        for ftz in (False, True) if type in ("f16", "f32") else (False,):
            for nan in (False, True) if type != "f64" else (False,):

                def result(a, b, op=op, ftz=ftz, nan=nan):
                    a, b = (format.flush(bits) if ftz else bits for bits in (a, b))
                    return smaller(format, a, b, op == "max", nan)

                def joined_signs(a, b, result=result):
                    result_bits = result(a & format.sign - 1, b & format.sign - 1)
                    return result_bits if format.is_nan(result_bits) else result_bits | (a ^ b) & format.sign

                text = f"{op}{modifiers(ftz)}{'.NaN' if nan else ''}"
                yield form(f"{text}.{type}", type, f"{type} {type}", result, **EXACT)
                if type != "f64":
                    yield form(f"{text}.xorsign.abs.{type}", type, f"{type} {type}", joined_signs)


def half_arithmetic(type):
    """Yield the arithmetic of one half-precision number."""
    ftz_too = (False, True) if type == "f16" else (False,)
    for op in ("add", "sub", "mul", "fma"):
        arity = OPERATIONS[op][0]
        for ftz in ftz_too:
            for sat in ftz_too:
                reference = operation(type, op, "rn", ftz, sat)
                yield form(f"{op}.rn{modifiers(ftz, sat)}.{type}", type, " ".join([type] * arity), reference, **EXACT)
    for ftz in ftz_too:
        reference = operation(type, "fma", "rn", ftz, relu=True)
        yield form(f"fma.rn{modifiers(ftz)}.relu.{type}", type, f"{type} {type} {type}", reference, **EXACT)


def each_half(half_form, type):
    """Return the form that applies a form to both halves of a register."""

    def reference(*pairs):
        parts = [half_form.reference(*operands) for operands in zip(*map(halves, pairs), strict=True)]
        return joined(parts) if all(isinstance(part, int) for part in parts) else None

    assert half_form.name.endswith(f".{type}")
    return form(f"{half_form.name}x2", f"{type}x2", " ".join([f"{type}x2"] * len(half_form.ins)), reference)


def classifications(type):
    """Yield testp for each kind of number."""
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
    for kind, reference in tests.items():
        yield form(f"testp.{kind}.{type}", "pred", type, lambda a, reference=reference: int(reference(a)), **EXACT)


ORDERED = {
    "eq": lambda order: order == 0,
    "ne": lambda order: order in (-1, 1),
    "lt": lambda order: order == -1,
    "le": lambda order: order in (-1, 0),
    "gt": lambda order: order == 1,
    "ge": lambda order: order in (0, 1),
    "num": lambda order: order is not None,
    "nan": lambda order: order is None,
}
RELATIONS = {
    **ORDERED,
    **{
        f"{name}u": lambda order, reference=reference: order is None or reference(order)
        for name, reference in ORDERED.items()
        if len(name) == 2
    },
}


def relation(type, name, ftz):
    """Return the reference function of a comparison."""
    format = FORMAT[type]

    def holds(a, b):
        if ftz:
            a, b = format.flush(a), format.flush(b)
        return int(RELATIONS[name](compare(format, a, b)))

    return holds


def flushes(type):
    """Return the values of ftz that the type permits."""
    return (False, True) if type in ("f16", "f32") else (False,)


def comparisons(type):
    """Yield setp with one and two results, alone and combined with a predicate, and set into all types."""
    inputs = f"{type} {type}"
    for name in RELATIONS:
        for ftz in flushes(type):
            holds = relation(type, name, ftz)
            flush = modifiers(ftz)
            yield form(f"setp.{name}{flush}.{type}", "pred", inputs, holds, **EXACT)
            if FORMAT[type].sign.bit_length() > 16:
                yield form(
                    f"setp.{name}{flush}.{type}",
                    "pred pred",
                    inputs,
                    lambda a, b, reference=holds: (reference(a, b), 1 - reference(a, b)),
                    **EXACT,
                )
            for operator, join in COMBINED.items():
                yield form(
                    f"setp.{name}.{operator}{flush}.{type}",
                    "pred",
                    f"{inputs} pred",
                    lambda a, b, c, reference=holds, join=join: join(reference(a, b), c),
                    **EXACT,
                )
            for output, true_value in SET_RESULTS[type].items():
                yield form(
                    f"set.{name}{flush}.{output}.{type}",
                    output,
                    inputs,
                    lambda a, b, reference=holds, y=true_value: y * reference(a, b),
                    **EXACT,
                )


ONES = {"u32": 0xFFFFFFFF, "s32": -1, "f32": 0x3F800000}
HALVES = {"u16": 0xFFFF, "s16": -1}
# {type of the operands: {type of set's result: its value for true}}
SET_RESULTS = {
    "f32": ONES,
    "f64": ONES,
    "f16": {"u32": ONES["u32"], "s32": -1, **HALVES, "f16": 0x3C00},
    "bf16": {"u32": ONES["u32"], "s32": -1, **HALVES, "bf16": 0x3F80},
}


def pair_comparisons(type):
    """Yield comparisons of both halves: into two predicates, or into the halves of the result."""
    pair = f"{type}x2"
    true_value = {"f16": 0x3C00, "bf16": 0x3F80}[type]
    for name in RELATIONS:
        for ftz in flushes(type):
            holds = relation(type, name, ftz)

            def compare_halves(a, b, reference=holds):
                return tuple(reference(x, y) for x, y in zip(halves(a), halves(b), strict=True))

            yield form(f"setp.{name}{modifiers(ftz)}.{pair}", "pred pred", f"{pair} {pair}", compare_halves)
            for operator, join in COMBINED.items():
                yield form(
                    f"setp.{name}.{operator}{modifiers(ftz)}.{pair}",
                    "pred pred",
                    f"{pair} {pair} pred",
                    lambda a, b, c, reference=compare_halves, join=join: tuple(join(bit, c) for bit in reference(a, b)),
                )
            yield form(
                f"set.{name}{modifiers(ftz)}.{pair}.{pair}",
                pair,
                f"{pair} {pair}",
                lambda a, b, reference=compare_halves: joined([true_value * bit for bit in reference(a, b)]),
            )


def selections():
    """Yield slct with a float as selector."""
    format = FORMAT["f32"]
    for type in ("b16", "b32", "b64"):
        for ftz in (False, True):

            def select(a, b, c):
                return a if not format.is_nan(c) and (c & format.sign == 0 or c & format.sign - 1 == 0) else b

            def select_flushed(a, b, c, reference=select):
                return reference(a, b, format.flush(c))

            yield form(
                f"slct{modifiers(ftz)}.{type}.f32", type, f"{type} {type} f32", select_flushed if ftz else select
            )


def families():
    """Return the forms of floating-point instructions by family."""
    half = [
        instruction
        for type in ("f16", "bf16")
        for make in (half_arithmetic, signs, limits)
        for instruction in make(type)
    ]
    pairs = [
        each_half(instruction, type)
        for type in ("f16", "bf16")
        for instruction in half
        if instruction.name.endswith(f".{type}")
    ]
    return {
        "single precision": list(arithmetic("f32")),
        "double precision": list(arithmetic("f64")),
        "signs and limits": [
            instruction for type in ("f32", "f64") for make in (signs, limits) for instruction in make(type)
        ],
        "half precision": half,
        "half precision in pairs": pairs,
        "kinds of floats": [*classifications("f32"), *classifications("f64"), *selections()],
        "float comparisons": [instruction for type in FORMAT for instruction in comparisons(type)],
        "comparisons of pairs": [*pair_comparisons("f16"), *pair_comparisons("bf16")],
    }
