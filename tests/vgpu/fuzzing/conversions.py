"""cvt: between integers, floats and halves, in each rounding, with ftz, sat and relu, and in wider registers."""

from fuzzing.floats import EXACT, FORMAT, MODES, words
from fuzzing.forms import bits_of, form, wrap
from fuzzing.integers import clamp
from fuzzing.reals import INFINITE, NAN, rounded, whole

INTEGERS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "us"]


def registers(type, other=""):
    """The type in registers of its own width and of wider ones, which bf16 does not permit."""
    own = max(bits_of(type), 16)
    return [f"{type}@{width}" for width in (16, 32, 64) if width == own or (width > own and other != "bf16")]


def is_within(source, into):
    return clamp(-(1 << 63), source) >= clamp(-(1 << 63), into) and clamp(1 << 64, source) <= clamp(1 << 64, into)


def between_integers():
    for source in INTEGERS:
        for into in INTEGERS:
            for given in registers(source):
                for made in registers(into):
                    yield form(f"cvt.{into}.{source}", made, given, lambda a: a)
                    if not is_within(source, into):
                        yield form(f"cvt.sat.{into}.{source}", made, given, lambda a, t=into: clamp(a, t))


def to_integer(source, into, mode, ftz):
    format = FORMAT[source]

    def of(bits):
        negative, m, e = format.number(format.flush(bits) if ftz else bits)
        if m == NAN:
            return 1 << bits_of(into) - 1 if source == "f64" or bits_of(into) == 64 else 0
        if m == INFINITE:
            return clamp(-(1 << 99) if negative else 1 << 99, into)
        _, m, e = whole((negative, m, e), mode)
        return clamp((-m if negative else m) << e, into)

    return of


def floats_to_integers():
    for source in FORMAT:
        for into in INTEGERS:
            if source == "bf16" and bits_of(into) == 8:
                continue
            for mode in MODES:
                for ftz in (False, True) if source == "f32" else (False,):
                    of = to_integer(source, into, mode, ftz)
                    for made in registers(into, source):
                        yield form(f"cvt.{mode}i{words(ftz)}.{into}.{source}", made, source, of, **EXACT)


def integers_to_floats():
    for source in INTEGERS:
        for into, format in FORMAT.items():
            if into == "bf16" and bits_of(source) == 8:
                continue
            for mode in MODES:
                for sat in (False, True) if into != "bf16" else (False,):

                    def of(a, format=format, mode=mode, sat=sat):
                        return rounded(format, (a < 0, abs(a), 0), mode, sat=sat)

                    for given in registers(source, into):
                        yield form(f"cvt.{mode}{words(sat=sat)}.{into}.{source}", into, given, of)


def converted(source, into, mode, ftz=False, sat=False, relu=False):
    give, take = FORMAT[source], FORMAT[into]

    def of(bits):
        bits = give.flush(bits) if ftz and source == "f32" else bits
        made = rounded(take, give.number(bits), mode, ftz=ftz and into == "f32", sat=sat, relu=relu)
        return take.any_nan if not isinstance(made, int) or (take.is_nan(made) and not relu) else made

    return of


def between_floats():
    for source in FORMAT:
        for into in FORMAT:
            if source == into or {source, into} == {"f16", "bf16"}:
                continue
            narrows = bits_of(into) < bits_of(source)
            for mode in MODES if narrows else [""]:
                text = f".{mode}" if mode else ""
                for ftz in (False, True) if "f32" in (source, into) and "bf16" not in (source, into) else (False,):
                    for sat in (False, True) if "bf16" not in (source, into) else (False,):
                        of = converted(source, into, mode or "rn", ftz, sat)
                        yield form(f"cvt{text}{words(ftz, sat)}.{into}.{source}", into, source, of, **EXACT)


def made_whole():
    for type in ("f16", "f32", "f64"):
        format = FORMAT[type]
        for mode in MODES:
            for ftz in (False, True) if type == "f32" else (False,):
                for sat in (False, True):

                    def of(bits, format=format, mode=mode, ftz=ftz, sat=sat):
                        bits = format.flush(bits) if ftz else bits
                        made = rounded(format, whole(format.number(bits), mode), sat=sat)
                        return format.any_nan if not isinstance(made, int) or format.is_nan(made) else made

                    yield form(f"cvt.{mode}i{words(ftz, sat)}.{type}.{type}", type, type, of, **EXACT)


def from_single():
    """Into halves and pairs of them, of which the first operand is the upper one."""
    for type in ("f16", "bf16"):
        for mode in ("rn", "rz"):
            for relu in (False, True):
                of = converted("f32", type, mode, relu=relu)

                def pair(a, b, of=of):
                    up, low = of(a), of(b)
                    return wrap(up, 16) << 16 | low if isinstance(up, int) and isinstance(low, int) else None

                text = f"cvt.{mode}{'.relu' if relu else ''}"
                yield form(f"{text}.{type}x2.f32", f"{type}x2", "f32 f32", pair, **EXACT)
                if relu:
                    yield form(f"{text}.{type}.f32", type, "f32", of, **EXACT)


def families():
    return {
        "integers to integers": list(between_integers()),
        "floats to integers": list(floats_to_integers()),
        "integers to floats": list(integers_to_floats()),
        "floats to floats": [*between_floats(), *made_whole(), *from_single()],
    }
