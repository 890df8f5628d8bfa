"""Data flow in machine code of Volta and later: which instructions write the values that another one reads.

Operand places were checked against nvdisasm of CUDA 12.4 on every instruction of functions with a compare-and-swap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tfdet.audit import sass
from tfdet.audit.basic_blocks import ControlFlowGraph
from tfdet.audit.cas_analysis import TooLongError
from tfdet.audit.sass_code import CALLS, PT, SassCode

_RZ = 255  # the register that is always zero
_PREDICATE = 256  # predicates are numbered behind the registers
_CALL = -1  # stands for all that a called function may write
_MAX_STEPS = 1_000_000  # basic blocks visited for one function, over all its compare-and-swaps
_PLOP3, _IMAD = 0x01C, 0x024
_PACKED_FMA, _IMMEDIATE_ADDEND = frozenset({0x031, 0x035}), 2


class _Form(NamedTuple):
    """How an instruction uses its fields: a and c are always registers, b only in some of its forms."""

    role: str
    sources: str = "abc"
    wide: str = ""  # operands that are register pairs; d is the destination
    predicates: int = 0  # destination predicates


_INTEGER = _Form("integer")
_INTEGER_FLAGS = _Form("integer", predicates=2)
_FORMS = {
    0x002: _Form("move", "b"),  # MOV
    0x003: _Form("unknown", ""),  # P2R
    0x005: _Form("source", "", "d"),  # CS2R
    0x006: _Form("unknown", "", predicates=1),  # VOTE
    0x007: _Form("select", "ab"),  # SEL
    0x008: _Form("select", "ab"),  # FSEL
    0x009: _Form("minmax", "ab"),  # FMNMX
    0x00A: _Form("compare", "ab"),  # FSET
    0x00B: _Form("compare", "ab", predicates=2),  # FSETP
    0x00C: _Form("compare", "ab", predicates=2),  # ISETP
    0x010: _INTEGER_FLAGS,  # IADD3
    0x011: _Form("integer", "abc", predicates=1),  # LEA
    0x012: _Form("bits", "abc", predicates=1),  # LOP3
    0x013: _Form("integer", "b"),  # IABS
    0x016: _Form("bits", "abc"),  # PRMT
    0x017: _Form("minmax", "ab"),  # IMNMX
    0x019: _Form("bits", "abc"),  # SHF
    0x01A: _Form("bits", "ab"),  # SGXT
    0x01C: _Form("unknown", "", predicates=2),  # PLOP3
    0x020: _Form("multiply f32", "ab"),  # FMUL
    0x021: _Form("add f32", "ab"),  # FADD with b a register
    0x023: _Form("multiply-add f32"),  # FFMA
    0x024: _Form("multiply"),  # IMAD
    0x025: _Form("multiply", "abc", "cd"),  # IMAD.WIDE
    0x027: _Form("multiply", "abc", "c"),  # IMAD.HI
    0x028: _Form("multiply f64", "ab", "abd"),  # DMUL
    0x029: _Form("add f64", "ac", "abcd"),  # DADD
    0x02A: _Form("compare", "ab", "ab", predicates=2),  # DSETP
    0x02B: _Form("multiply-add f64", "abc", "abcd"),  # DFMA
    0x030: _Form("add f16", "ab"),  # HADD2
    0x031: _Form("multiply-add f16"),  # HFMA2
    0x032: _Form("multiply f16", "ab"),  # HMUL2
    0x033: _Form("compare", "ab"),  # HSET2
    0x034: _Form("compare", "ab", predicates=2),  # HSETP2
    0x035: _Form("multiply-add f16"),  # HFMA2.MMA
    0x036: _Form("integer", "ab"),  # VIADD
    0x03E: _Form("convert", "ab"),  # F2FP
    0x040: _Form("minmax", "ab"),  # HMNMX2
    0x045: _Form("convert", "b"),  # I2FP
    0x046: _Form("integer"),  # VIADDMNMX
    0x048: _Form("minmax", "ab"),  # VIMNMX
    0x100: _Form("integer", "b"),  # FLO
    0x102: _Form("compare", "ab", predicates=1),  # FCHK
    0x104: _Form("convert", "b"),  # F2F
    0x105: _Form("convert", "b"),  # F2I
    0x106: _Form("convert", "b"),  # I2F
    0x107: _Form("convert", "b"),  # FRND
    0x108: _Form("reciprocal f32", "b"),  # MUFU
    0x109: _Form("integer", "b"),  # POPC
    0x110: _Form("convert", "b", "bd"),  # F2F with f64
    0x111: _Form("convert", "b", "bd"),  # F2I with 64 bits
    0x112: _Form("convert", "b", "bd"),  # I2F with 64 bits
    0x119: _Form("source", ""),  # S2R
}
_LOADS = frozenset({0x180, 0x181, 0x182, 0x183, 0x184})  # LD, LDG, LDC, LDL, LDS
_LOAD_LOCAL, _LOAD_CONSTANT = 0x183, 0x182
_ATOMS = frozenset({0x18A, 0x18B, 0x18C, 0x18D, 0x1A2, 0x1A3, 0x1A8, 0x1A9})
_WIDE_ATOMS = {2: 2, 5: 2, 6: 2, 4: 4}
_WIDE_SWAPS = {2: 2, 4: 4}
_STORES = frozenset({0x185, 0x186, 0x188})  # ST, STG, STS
_WIDE_LOADS = {5: 2, 6: 4}  # bits 73 to 75 of a load: 64 bits, 128 bits
# The uniform datapath has registers of its own, which are numbered from 0 too.
_UNIFORM = frozenset({*range(0x080, 0x0C0), 0x0CA, 0x1C2, 0x1C3, 0x1C4})
# No destination among the registers: stores, barriers, control flow.
_NO_RESULT = frozenset({*_UNIFORM, 0x118, 0x11A, 0x11B, 0x11D, *range(0x140, 0x160), 0x185, 0x186, 0x187, 0x188, 0x18E,
                     0x18F, 0x192, 0x1A6, 0x1AB})  # fmt: skip


class SassDataflow(SassCode):
    """One function's code, taken apart once for all its compare-and-swaps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.budget = _MAX_STEPS
        self._find_writers()

    def _find_writers(self) -> None:
        """`writers[register]`: the instructions that may write it, in order."""
        self.writers: dict[int, list[int]] = defaultdict(list)
        for at, opcode in enumerate(self.opcode):
            if opcode in _NO_RESULT:
                if opcode in CALLS and at not in self.copies:
                    self.writers[_CALL].append(at)
                continue
            if self._is_never_executed(at):
                continue
            for register in self._written(at):
                self.writers[register].append(at)

    def _is_never_executed(self, at: int) -> bool:
        """Is it guarded by @!PT?"""
        return self.guard(at) == PT and self.low[at] >> 15 & 1 == 1

    def _written(self, at: int) -> Iterator[int]:
        low, high, opcode = self.low[at], self.high[at], self.opcode[at]
        form = _FORMS.get(opcode)
        first = low >> 16 & 0xFF
        if opcode in _LOADS:
            count = _WIDE_LOADS.get(high >> 9 & 7, 1)
        elif opcode in _ATOMS:
            count = _WIDE_ATOMS.get(high >> 9 & 7, 1)
        else:
            count = 2 if form and "d" in form.wide else 1
        predicates = form.predicates if form else 1 if opcode in _ATOMS else 0
        if first != _RZ and not (form and form.role == "compare" and form.predicates):
            yield from range(first, min(first + count, _RZ))
        for number in range(predicates):
            predicate = high >> (17 + 3 * number) & 7
            if predicate != PT:
                yield _PREDICATE + predicate

    def definitions(self, register: int, at: int) -> set[int]:
        """Instructions whose value `register` may hold when instruction `at` starts; -1 - n for the call at n."""
        found: set[int] = set()
        block = bisect_left(self.starts, at + 1) - 1
        pending = [(block, at)]
        seen: set[int] = set()
        writers, calls = self.writers.get(register, []), self.writers.get(_CALL, [])
        while pending:
            self.budget -= 1
            if self.budget < 0:
                raise TooLongError
            block, end = pending.pop()
            start = self.starts[block]
            if not self._last_writer(writers, calls, start, end, found):
                for previous in self.before[block]:
                    if previous not in seen:
                        seen.add(previous)
                        pending.append((previous, self.ends[previous]))
        return found

    def _last_writer(self, writers: list[int], calls: list[int], start: int, end: int, found: set[int]) -> bool:
        """Add what may have written last in [start, end); was one of them certain to?"""
        index = bisect_left(writers, end) - 1
        later: list[int] = []
        while index >= 0 and writers[index] >= start:
            found.add(writers[index])
            if self.guard(writers[index]) == PT or any(
                self._is_complementary(writers[index], other) for other in later
            ):
                break
            later.append(writers[index])
            index -= 1
        since = writers[index] if index >= 0 and writers[index] >= start else start
        certain = index >= 0 and writers[index] >= start
        between = bisect_left(calls, end) - 1
        if between >= 0 and calls[between] >= since:
            found.add(-1 - calls[between])
        return certain

    def _is_complementary(self, at: int, later: int) -> bool:
        """Does one of these two instructions of a block run exactly where the other does not?"""
        writers = self.writers.get(_PREDICATE + self.guard(at), [])
        same = self.guard(at) == self.guard(later) and bisect_left(writers, at) == bisect_left(writers, later)
        return same and (self.low[at] ^ self.low[later]) >> 15 & 1 == 1

    def sources(self, at: int) -> set[int]:
        """Registers and predicates whose values go into what the instruction writes."""
        low, high = self.low[at], self.high[at]
        form = _FORMS.get(self.opcode[at])
        if form is None:
            return set()
        shape = low >> 9 & 7
        places = {"a": low >> 24 & 0xFF, "b": low >> 32 & 0xFF if shape == 1 else _RZ, "c": high & 0xFF}
        if shape in (2, 3, 7):  # an immediate, a constant or a uniform register is operand c, and b takes c's bits
            places["b"] = high & 0xFF if "c" in form.sources else _RZ
            places["c"] = _RZ
        registers: set[int] = set()
        for operand in form.sources:
            register = places[operand]
            if register != _RZ:
                registers |= {register, register + 1} if operand in form.wide else {register}
        return registers

    def swap(self, at: int) -> tuple[range, range]:
        """Registers with the compared and with the new value of a compare-and-swap."""
        low, high = self.low[at], self.high[at]
        width = _WIDE_SWAPS.get(high >> 9 & 7, 1)
        return _registers(low >> 32 & 0xFF, width), _registers(high & 0xFF, width)

    def condition(self, at: int) -> int | None:
        """The predicate that decides whether the instruction writes, or which of its sources; None without one."""
        number = self.guard(at)
        form = _FORMS.get(self.opcode[at])
        if number == PT and form and form.role == "select":
            number = self.high[at] >> 23 & 7
            return _PREDICATE + number
        return _PREDICATE + number if number != PT else None

    def combined_predicates(self, at: int) -> list[int]:
        """The predicates that a PLOP3 combines; none for other instructions."""
        if self.opcode[at] != _PLOP3:
            return []
        high = self.high[at]
        numbers = (high >> 23 & 7, high >> 13 & 7, high >> 4 & 7)
        return [_PREDICATE + number for number in numbers if number != PT]

    def role(self, at: int) -> str:
        """What the instruction does to the values in its sources."""
        opcode, high = self.opcode[at], self.high[at]
        if opcode == _LOAD_CONSTANT:
            return "source"
        if opcode in _LOADS or opcode in _ATOMS:
            return "load"
        form = _FORMS.get(opcode)
        if form is None:
            return "unknown"
        if opcode in _PACKED_FMA and self.low[at] >> 9 & 7 == _IMMEDIATE_ADDEND and not self.sources(at):
            return "move"  # 0 * 0 + a constant, on a unit that is free
        if form.role.startswith("add ") and len(self.sources(at)) < 2 and self._adds_zero(at):
            return "convert"  # x + -0: a change of sign or of width
        if opcode == _IMAD:
            return self._imad_role(at)
        if form.role.endswith("f16") and high >> 21 & 1:
            return form.role.replace("f16", "bf16")
        if opcode == 0x030 and high >> 14 & 1:
            return "add f32"  # HADD2.F32
        return form.role

    def _adds_zero(self, at: int) -> bool:
        """Is one of an addition's operands the zero register?"""
        low, high = self.low[at], self.high[at]
        second = low >> 32 & 0xFF if "b" in _FORMS[self.opcode[at]].sources else high & 0xFF
        return low >> 24 & 0xFF == _RZ or (low >> 9 & 7 == 1 and second == _RZ)

    def _imad_role(self, at: int) -> str:
        """a * b + c is also how compilers move (a or b is zero) and add (b is 1)."""
        low, high = self.low[at], self.high[at]
        shape = low >> 9 & 7
        if _RZ in (low >> 24 & 0xFF, low >> 32 & 0xFF if shape == 1 else high & 0xFF if shape in (2, 3, 7) else 0):
            return "move"
        addend = high & 0xFF if shape not in (2, 3, 7) else 0
        if shape == 4 and (low >> 32).bit_count() == 1:  # by a power of two: a shift, as LEA does it
            return "bits" if addend == _RZ else "integer"
        return "multiply" if addend == _RZ else "multiply-add"

    def constants(self, at: int) -> tuple[Hashable, ...]:
        data, size = self.low[at] >> 32 & 0xFF, self.high[at] >> 9 & 7
        if self.opcode[at] in sass.CAS:
            return tuple(
                self._register_constant(_registers(first, _WIDE_SWAPS.get(size, 1)), at)
                for first in (data, self.high[at] & 0xFF)
            )
        width = _WIDE_LOADS.get(size, 1) if self.opcode[at] in _STORES else _WIDE_ATOMS.get(size, 1)
        return (self._register_constant(_registers(data, width), at),)

    def _register_constant(self, registers: range, at: int) -> Hashable:
        """What registers hold, if that is the same in all threads; the zero register has no number here."""
        values = [self._constant(register, at) for register in registers]
        return None if None in values else values[0] if len(values) == 1 else tuple(values) or 0

    def _constant(self, register: int, at: int) -> Hashable:
        """A value that is the same in all threads: a number, or the place of a launch parameter; None for all else."""
        definitions = self.definitions(register, at)
        move = next(iter(definitions)) if len(definitions) == 1 else -1
        if move < 0 or self.role(move) != "move" or self.sources(move) or self.guard(move) != PT:
            return None
        shape, value = self.low[move] >> 9 & 7, self.low[move] >> 32
        return {1: 0, 2: value, 4: value, 3: ("parameter", value), 5: ("parameter", value)}.get(shape)

    def memory(self, at: int) -> str:
        opcode = self.opcode[at]
        if self._is_never_executed(at):
            return ""
        if opcode in sass.CAS:
            return "swap"
        if opcode in _STORES:
            return "store"
        if opcode in _LOADS - {_LOAD_CONSTANT, _LOAD_LOCAL}:
            return "load"
        if sass.is_atomic(opcode, self.arch):
            kind = sass.kind(self.low[at], self.high[at], self.arch)
            if kind.startswith("exch") and not sass.returns_old_value(self.low[at]):
                return "exchange"
            return "count" if kind.startswith("incdec") else "other"
        return "other" if opcode in CALLS and at not in self.copies else ""

    def blocks(self) -> ControlFlowGraph:
        return ControlFlowGraph(self.starts, self.ends, self.before)


def _registers(first: int, width: int) -> range:
    return range(first, first + width) if first != _RZ else range(0)
