"""Forms of cvt: between integers, floats and halves, with each rounding, ftz, sat, relu, and in wider registers.

form(text, outputs, inputs, reference) is an instruction with the types of its operands, and a Python function that
computes its result.  With **EXACT, the bits of a NaN operand do not matter to the result.
"""

from fuzzing.floats import EXACT, FORMAT, MODES, modifiers
from fuzzing.forms import bits_of, form, wrap
from fuzzing.integers import clamp
from fuzzing.reals import INFINITE, NAN, round_to_integer, rounded

INTEGERS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "us"]


def registers(type, other_type=""):
    """Return the type in registers of its own width and of wider ones, which bf16 does not permit."""
    narrowest = max(bits_of(type), 16)
    return [
        f"{type}@{width}"
        for width in (16, 32, 64)
        if width == narrowest or (width > narrowest and other_type != "bf16")
    ]


def is_within(source, target):
    """Return whether the target type holds all values of the source type."""
    return clamp(-(1 << 63), source) >= clamp(-(1 << 63), target) and clamp(1 << 64, source) <= clamp(1 << 64, target)


def between_integers():
    """Yield cvt between integers, in registers of several widths."""
    for source in INTEGERS:
        for target in INTEGERS:
            for input_type in registers(source):
                for output_type in registers(target):
                    yield form(f"cvt.{target}.{source}", output_type, input_type, lambda a: a)
                    if not is_within(source, target):
                        yield form(
                            f"cvt.sat.{target}.{source}", output_type, input_type, lambda a, t=target: clamp(a, t)
                        )


def to_integer(source, target, mode, ftz):
    """Return the reference function of cvt from a float to an integer."""
    format = FORMAT[source]

    def reference(bits):
        negative, m, e = format.number(format.flush(bits) if ftz else bits)
        if m == NAN:
            return 1 << bits_of(target) - 1 if source == "f64" or bits_of(target) == 64 else 0
        if m == INFINITE:
            return clamp(-(1 << 99) if negative else 1 << 99, target)
        _, m, e = round_to_integer((negative, m, e), mode)
        return clamp((-m if negative else m) << e, target)

    return reference


def floats_to_integers():
    """Yield cvt from floats to integers."""
    for source in FORMAT:
        for target in INTEGERS:
            if source == "bf16" and bits_of(target) == 8:
                continue
            for mode in MODES:
                for ftz in (False, True) if source == "f32" else (False,):
                    reference = to_integer(source, target, mode, ftz)
                    for output_type in registers(target, source):
                        yield form(
                            f"cvt.{mode}i{modifiers(ftz)}.{target}.{source}", output_type, source, reference, **EXACT
                        )


def integers_to_floats():
    """Yield cvt from integers to floats."""
    for source in INTEGERS:
        for target, format in FORMAT.items():
            if target == "bf16" and bits_of(source) == 8:
                continue
            for mode in MODES:
                for sat in (False, True) if target != "bf16" else (False,):

                    def reference(a, format=format, mode=mode, sat=sat):
                        return rounded(format, (a < 0, abs(a), 0), mode, sat=sat)

                    for input_type in registers(source, target):
                        yield form(f"cvt.{mode}{modifiers(sat=sat)}.{target}.{source}", target, input_type, reference)


def converted(source, target, mode, ftz=False, sat=False, relu=False):
    """Return the reference function of cvt between floats."""
    source_format, target_format = FORMAT[source], FORMAT[target]

    def reference(bits):
        bits = source_format.flush(bits) if ftz and source == "f32" else bits
        result = rounded(
            target_format, source_format.number(bits), mode, ftz=ftz and target == "f32", sat=sat, relu=relu
        )
        return (
            target_format.any_nan
            if not isinstance(result, int) or (target_format.is_nan(result) and not relu)
            else result
        )

    return reference


def between_floats():
    """Yield cvt between floats of different formats."""
    for source in FORMAT:
        for target in FORMAT:
            if source == target or {source, target} == {"f16", "bf16"}:
                continue
            narrows = bits_of(target) < bits_of(source)
            for mode in MODES if narrows else [""]:
                text = f".{mode}" if mode else ""
                for ftz in (False, True) if "f32" in (source, target) and "bf16" not in (source, target) else (False,):
                    for sat in (False, True) if "bf16" not in (source, target) else (False,):
                        reference = converted(source, target, mode or "rn", ftz, sat)
                        yield form(
                            f"cvt{text}{modifiers(ftz, sat)}.{target}.{source}", target, source, reference, **EXACT
                        )


def floats_to_integral_floats():
    """Yield cvt that rounds a float to an integral value."""
    for type in ("f16", "f32", "f64"):
        format = FORMAT[type]
        for mode in MODES:
            for ftz in (False, True) if type == "f32" else (False,):
                for sat in (False, True):

                    def reference(bits, format=format, mode=mode, ftz=ftz, sat=sat):
                        bits = format.flush(bits) if ftz else bits
                        result = rounded(format, round_to_integer(format.number(bits), mode), sat=sat)
                        return format.any_nan if not isinstance(result, int) or format.is_nan(result) else result

                    yield form(f"cvt.{mode}i{modifiers(ftz, sat)}.{type}.{type}", type, type, reference, **EXACT)


def singles_to_halves():
    """Yield conversions to halves and pairs of them, whose first operand is the upper half."""
    for type in ("f16", "bf16"):
        for mode in ("rn", "rz"):
            for relu in (False, True):
                reference = converted("f32", type, mode, relu=relu)

                def pair(a, b, reference=reference):
                    up, low = reference(a), reference(b)
                    return wrap(up, 16) << 16 | low if isinstance(up, int) and isinstance(low, int) else None

                text = f"cvt.{mode}{'.relu' if relu else ''}"
                yield form(f"{text}.{type}x2.f32", f"{type}x2", "f32 f32", pair, **EXACT)
                if relu:
                    yield form(f"{text}.{type}.f32", type, "f32", reference, **EXACT)


def families():
    """Return the forms of cvt by family."""
    return {
        "integers to integers": list(between_integers()),
        "floats to integers": list(floats_to_integers()),
        "integers to floats": list(integers_to_floats()),
        "floats to floats": [*between_floats(), *floats_to_integral_floats(), *singles_to_halves()],
    }
