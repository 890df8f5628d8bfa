"""Instruction forms: a text, the types of its operands, and a reference function for its result, after the PTX ISA.

A reference function takes and returns Python numbers: integers of a signed type have their sign, all other values are
bits.  If PTX leaves a result undefined, the function returns None, and nothing that depends on the result is compared.
An AnyNan stands for a NaN of unspecified bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

SIZES = {"pred": 1, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32}
Reference = Callable[..., object]


@cache
def bits_of(type: str) -> int:
    """Return the width in bits of a value of this type."""
    return SIZES.get(type) or int(type.lstrip("bfsu"))


def to_signed(value: int, bits: int) -> int:
    """Return the number that the low bits stand for in two's complement."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def wrap(value: int, bits: int) -> int:
    """Return the low bits of a number."""
    return value & ((1 << bits) - 1)


@dataclass(frozen=True)
class AnyNan:
    """A NaN of this type whose bits PTX does not specify."""

    type: str


@dataclass(frozen=True)
class Form:
    """The instruction `name out, in, in;` with its reference function.

    A type may name the register's width: `u8@32` is the low byte of a 32-bit register.  `u32:0-255` is a type whose
    literals have this range; `=u32:0-255` must be a literal.  `reads_carry` and `writes_carry` concern CC.CF.
    """

    name: str
    outs: tuple[str, ...]
    ins: tuple[str, ...]
    reference: Reference
    reads_carry: bool = False
    writes_carry: bool = False
    takes_any_nan: bool = False  # the result does not depend on the bits of a NaN operand

    def number(self, value: object, type: str) -> object:
        """Return an operand's bits as the reference function expects them."""
        if isinstance(value, AnyNan):
            return CANONICAL[type] if self.takes_any_nan and value.type == type else None
        if not isinstance(value, int):
            return None
        value = wrap(value, bits_of(type))
        return to_signed(value, bits_of(type)) if type[0] == "s" and not type.endswith("x2") else value

    def apply(self, values: list[object]) -> list[object]:
        """Return the outputs' bits, and the carry if it is written, for the inputs (and the carry if it is read)."""
        operands = [self.number(value, plain_type(type)) for value, type in zip(values, self.ins, strict=False)]
        operands += values[len(self.ins) :]
        count = len(self.outs) + self.writes_carry
        if any(operand is None for operand in operands):
            return [None] * count
        results = self.reference(*operands)
        results = list(results) if isinstance(results, tuple) else [results]
        return results if len(results) == count else results * count


# The bits of the canonical NaN of each format.
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}


@cache
def plain_type(operand_type: str) -> str:
    """Return the type without width and range: u8 for `u8@32`, u32 for `=u32:0-255`."""
    return operand_type.lstrip("=").split("@")[0].split(":")[0]


@cache
def register_width(operand_type: str) -> int:
    """Return the width in bits of the register that holds the operand; 1 for a predicate."""
    if "@" in operand_type:
        return int(operand_type.split("@")[1])
    bits = bits_of(plain_type(operand_type))
    return bits if bits == 1 else max(bits, 16)


def form(name: str, outs: str, ins: str, reference: Reference, **options: bool) -> Form:
    """Return a Form; outs, ins: types with blanks between them."""
    return Form(name, tuple(outs.split()), tuple(ins.split()), reference, **options)


def halves(value: int, bits: int = 16, count: int = 2, signed: bool = False) -> list[int]:
    """Split a register into parts, the lowest first."""
    parts = [wrap(value >> bits * k, bits) for k in range(count)]
    return [to_signed(part, bits) for part in parts] if signed else parts


def joined(parts: list[int], bits: int = 16) -> int:
    """Join parts to a register, the lowest first."""
    return sum(wrap(part, bits) << bits * k for k, part in enumerate(parts))
