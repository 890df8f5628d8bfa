"""Instruction forms: a text, the types of its operands, and what it makes of their values, as the PTX ISA defines it.

A reference function takes and gives Python numbers: of a signed type with its sign, of all others the bits.  Where PTX
leaves a result open it gives None, and nothing that is made of it is compared; an AnyNan is a NaN of unspecified bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

SIZES = {"pred": 1, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32}
Reference = Callable[..., object]


@cache
def bits_of(type: str) -> int:
    """How wide a value of this type is."""
    return SIZES.get(type) or int(type.lstrip("bfsu"))


def to_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def wrap(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


@dataclass(frozen=True)
class AnyNan:
    """A NaN of this type, of which PTX does not say the bits."""

    type: str


@dataclass(frozen=True)
class Form:
    """`name out, in, in;`: `immediates` are written behind the operands, `carry` says what it does with CC.CF.

    A type may name the register's width: `u8@32` is the low byte of a 32-bit register.  `u32:0-255` says which literals
    are permitted; an input `=u32:0-255` has to be one.
    """

    name: str
    outs: tuple[str, ...]
    ins: tuple[str, ...]
    of: Reference
    reads_carry: bool = False
    writes_carry: bool = False
    takes_any_nan: bool = False  # of a NaN operand's bits nothing shows in the result

    def number(self, value: object, type: str) -> object:
        """An operand's bits as the reference wants them."""
        if isinstance(value, AnyNan):
            return CANONICAL[type] if self.takes_any_nan and value.type == type else None
        if not isinstance(value, int):
            return None
        value = wrap(value, bits_of(type))
        return to_signed(value, bits_of(type)) if type[0] == "s" and not type.endswith("x2") else value

    def apply(self, values: list[object]) -> list[object]:
        """The outs' bits, and the carry if it writes one, of the ins' and the carry if it reads one."""
        given = [self.number(value, plain_type(one)) for value, one in zip(values, self.ins, strict=False)]
        given += values[len(self.ins) :]
        count = len(self.outs) + self.writes_carry
        if any(one is None for one in given):
            return [None] * count
        made = self.of(*given)
        made = list(made) if isinstance(made, tuple) else [made]
        return made if len(made) == count else made * count


CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}


@cache
def plain_type(written: str) -> str:
    """`u8@32` and `=u32:0-255` are u8 and u32."""
    return written.lstrip("=").split("@")[0].split(":")[0]


@cache
def register_width(written: str) -> int:
    """Bits of the register that holds it; 1 for a predicate."""
    if "@" in written:
        return int(written.split("@")[1])
    bits = bits_of(plain_type(written))
    return bits if bits == 1 else max(bits, 16)


def form(name: str, outs: str, ins: str, of: Reference, **how: bool) -> Form:
    return Form(name, tuple(outs.split()), tuple(ins.split()), of, **how)


def halves(value: int, bits: int = 16, count: int = 2, signed: bool = False) -> list[int]:
    """The parts of a register, the lowest first."""
    parts = [wrap(value >> bits * k, bits) for k in range(count)]
    return [to_signed(one, bits) for one in parts] if signed else parts


def joined(parts: list[int], bits: int = 16) -> int:
    return sum(wrap(one, bits) << bits * k for k, one in enumerate(parts))
