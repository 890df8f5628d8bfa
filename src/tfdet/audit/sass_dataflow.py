"""Data flow in SASS, the machine code, of Volta and later: finds the instructions that write what another one reads.

An instruction is 128 bits, `low` and `high`.  Bits of low: opcode (0-8), encoding (9-11), guard predicate (12-14,
negated by 15), destination (16-23), operand a (24-31), operand b (32-39, or an immediate in 32-63).  Bits of high:
operand c (0-7), size or modifiers (9-11), destination predicates (17-22).  PT is the predicate that is always true.
Encoding 1 has registers only.  An immediate, a constant or a uniform register is operand c in encodings 2, 3 and 7,
and operand b in encodings 4, 5 and 6.  `copies` has the calls whose function was appended to the code.

The operand fields were compared with the output of nvdisasm of CUDA 12.4, for all instructions of functions with a
compare-and-swap.
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
_PREDICATE = 256  # the number of predicate 0: predicates are numbered after the registers
_CALL = -1  # the number of a pseudo register that every call writes
_MAX_STEPS = 1_000_000  # basic blocks visited for one function, over all its compare-and-swaps
_PLOP3, _IMAD = 0x01C, 0x024
_PACKED_FMA, _IMMEDIATE_ADDEND = frozenset({0x031, 0x035}), 2


class _Form(NamedTuple):
    """The operands of an opcode, named by field: a and c are always registers, b only in some encodings."""

    role: str  # of its result, see cas_analysis.Dataflow
    sources: str = "abc"
    wide: str = ""  # operands that are register pairs; d is the destination
    predicates: int = 0  # destination predicates


_INTEGER = _Form("integer")
_INTEGER_FLAGS = _Form("integer", predicates=2)
_FORMS = {
    0x002: _Form("move", "b"),  # MOV
    0x003: _Form("unknown", ""),  # P2R
    0x005: _Form("input", "", "d"),  # CS2R
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
    0x119: _Form("input", ""),  # S2R
}
_LOADS = frozenset({0x180, 0x181, 0x182, 0x183, 0x184})  # LD, LDG, LDC, LDL, LDS
_LOAD_LOCAL, _LOAD_CONSTANT = 0x183, 0x182
# Atomics with a result, which RED has not.
_ATOMS = frozenset({0x18A, 0x18B, 0x18C, 0x18D, 0x1A2, 0x1A3, 0x1A8, 0x1A9})
_WIDE_ATOMS = {2: 2, 5: 2, 6: 2, 4: 4}  # {bits 73 to 75 of an atomic: registers of its value}; others take one
_WIDE_SWAPS = {2: 2, 4: 4}  # the same for a compare-and-swap
_STORES = frozenset({0x185, 0x186, 0x188})  # ST, STG, STS
_WIDE_LOADS = {5: 2, 6: 4}  # bits 73 to 75 of a load: 64 bits, 128 bits
# The uniform datapath has its own registers, which are numbered from 0, too.
_UNIFORM = frozenset({*range(0x080, 0x0C0), 0x0CA, 0x1C2, 0x1C3, 0x1C4})
# Opcodes that write no ordinary register: stores, barriers, control flow.
_NO_RESULT = frozenset({*_UNIFORM, 0x118, 0x11A, 0x11B, 0x11D, *range(0x140, 0x160), 0x185, 0x186, 0x187, 0x188, 0x18E,
                     0x18F, 0x192, 0x1A6, 0x1AB})  # fmt: skip


class SassDataflow(SassCode):
    """One function's code with its data flow, for the analysis of all its compare-and-swaps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.budget = _MAX_STEPS
        self._find_writers()

    def _find_writers(self) -> None:
        """Set `writers[register]`: the instructions that may write the register, in order."""
        self.writers: dict[int, list[int]] = defaultdict(list)
        for at, opcode in enumerate(self.opcode):
            if opcode in _NO_RESULT:
                if opcode in CALLS and at not in self.copies:
                    self.writers[_CALL].append(at)
                continue
            if self._is_never_executed(at):
                continue
            for register in self._destinations(at):
                self.writers[register].append(at)

    def _is_never_executed(self, at: int) -> bool:
        """Return whether the instruction is guarded by @!PT."""
        return self.guard(at) == PT and self.low[at] >> 15 & 1 == 1

    def _destinations(self, at: int) -> Iterator[int]:
        """Yield the registers and predicates that the instruction writes."""
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
        """Return the instructions whose value `register` may hold before instruction `at`; -1 - n for the call at n."""
        definitions: set[int] = set()
        block = bisect_left(self.starts, at + 1) - 1
        pending = [(block, at)]
        visited: set[int] = set()
        writers, calls = self.writers.get(register, []), self.writers.get(_CALL, [])
        while pending:
            self.budget -= 1
            if self.budget < 0:
                raise TooLongError
            block, end = pending.pop()
            start = self.starts[block]
            if not self._add_last_writers(writers, calls, start, end, definitions):
                for predecessor in self.predecessors[block]:
                    if predecessor not in visited:
                        visited.add(predecessor)
                        pending.append((predecessor, self.ends[predecessor]))
        return definitions

    def _add_last_writers(
        self, writers: list[int], calls: list[int], start: int, end: int, definitions: set[int]
    ) -> bool:
        """Add the instructions in [start, end) that may write last; return whether one of them always executes."""
        index = bisect_left(writers, end) - 1
        later: list[int] = []
        while index >= 0 and writers[index] >= start:
            definitions.add(writers[index])
            if self.guard(writers[index]) == PT or any(
                self._is_complementary(writers[index], other) for other in later
            ):
                break
            later.append(writers[index])
            index -= 1
        always_writes = index >= 0 and writers[index] >= start
        first = writers[index] if always_writes else start
        last_call = bisect_left(calls, end) - 1
        if last_call >= 0 and calls[last_call] >= first:
            definitions.add(-1 - calls[last_call])
        return always_writes

    def _is_complementary(self, at: int, later: int) -> bool:
        """Return whether exactly one of these two instructions of a block executes, by opposite guards."""
        writers = self.writers.get(_PREDICATE + self.guard(at), [])
        is_same_guard = self.guard(at) == self.guard(later) and bisect_left(writers, at) == bisect_left(writers, later)
        return is_same_guard and (self.low[at] ^ self.low[later]) >> 15 & 1 == 1

    def sources(self, at: int) -> set[int]:
        """Return the registers and predicates from which the instruction computes its result."""
        low, high = self.low[at], self.high[at]
        form = _FORMS.get(self.opcode[at])
        if form is None:
            return set()
        encoding = low >> 9 & 7
        fields = {"a": low >> 24 & 0xFF, "b": low >> 32 & 0xFF if encoding == 1 else _RZ, "c": high & 0xFF}
        if encoding in (2, 3, 7):  # an immediate, a constant or a uniform register is operand c, and b takes c's bits
            fields["b"] = high & 0xFF if "c" in form.sources else _RZ
            fields["c"] = _RZ
        registers: set[int] = set()
        for operand in form.sources:
            register = fields[operand]
            if register != _RZ:
                registers |= {register, register + 1} if operand in form.wide else {register}
        return registers

    def swap(self, at: int) -> tuple[range, range]:
        """Return the registers with the compared value and those with the new value of a compare-and-swap."""
        low, high = self.low[at], self.high[at]
        width = _WIDE_SWAPS.get(high >> 9 & 7, 1)
        return _registers(low >> 32 & 0xFF, width), _registers(high & 0xFF, width)

    def condition(self, at: int) -> int | None:
        """Return the predicate that guards the instruction or, for a selection, selects its source; None without."""
        number = self.guard(at)
        form = _FORMS.get(self.opcode[at])
        if number == PT and form and form.role == "select":
            number = self.high[at] >> 23 & 7
            return _PREDICATE + number
        return _PREDICATE + number if number != PT else None

    def combined_predicates(self, at: int) -> list[int]:
        """Return the predicates that a PLOP3 combines; empty for other instructions."""
        if self.opcode[at] != _PLOP3:
            return []
        high = self.high[at]
        numbers = (high >> 23 & 7, high >> 13 & 7, high >> 4 & 7)
        return [_PREDICATE + number for number in numbers if number != PT]

    def role(self, at: int) -> str:
        """Return what the instruction does to its sources: a role of `cas_analysis.Dataflow`."""
        opcode, high = self.opcode[at], self.high[at]
        if opcode == _LOAD_CONSTANT:
            return "input"
        if opcode in _LOADS or opcode in _ATOMS:
            return "load"
        form = _FORMS.get(opcode)
        if form is None:
            return "unknown"
        if opcode in _PACKED_FMA and self.low[at] >> 9 & 7 == _IMMEDIATE_ADDEND and not self.sources(at):
            return "move"  # 0 * 0 + constant: compilers move constants by an idle FMA unit
        if form.role.startswith("add ") and len(self.sources(at)) < 2 and self._adds_zero(at):
            return "convert"  # x + -0: changes the sign or the width
        if opcode == _IMAD:
            return self._imad_role(at)
        if form.role.endswith("f16") and high >> 21 & 1:
            return form.role.replace("f16", "bf16")
        if opcode == 0x030 and high >> 14 & 1:
            return "add f32"  # HADD2.F32
        return form.role

    def _adds_zero(self, at: int) -> bool:
        """Return whether one operand of an addition is the zero register."""
        low, high = self.low[at], self.high[at]
        second = low >> 32 & 0xFF if "b" in _FORMS[self.opcode[at]].sources else high & 0xFF
        return low >> 24 & 0xFF == _RZ or (low >> 9 & 7 == 1 and second == _RZ)

    def _imad_role(self, at: int) -> str:
        """Return the role of an IMAD, a * b + c, which compilers also use to move (a or b is zero) and to shift."""
        low, high = self.low[at], self.high[at]
        encoding = low >> 9 & 7
        second = low >> 32 & 0xFF if encoding == 1 else high & 0xFF if encoding in (2, 3, 7) else 0
        if _RZ in (low >> 24 & 0xFF, second):
            return "move"
        addend = high & 0xFF if encoding not in (2, 3, 7) else 0
        if encoding == 4 and (low >> 32).bit_count() == 1:  # multiplies by a power of two: a shift, as in LEA
            return "bits" if addend == _RZ else "integer"
        return "multiply" if addend == _RZ else "multiply-add"

    def constants(self, at: int) -> tuple[Hashable, ...]:
        """Return the operands of an atomic (of a CAS: compared, new) or a store; None for what may differ by thread."""
        data, size = self.low[at] >> 32 & 0xFF, self.high[at] >> 9 & 7
        if self.opcode[at] in sass.CAS:
            return tuple(
                self._register_constant(_registers(first, _WIDE_SWAPS.get(size, 1)), at)
                for first in (data, self.high[at] & 0xFF)
            )
        width = _WIDE_LOADS.get(size, 1) if self.opcode[at] in _STORES else _WIDE_ATOMS.get(size, 1)
        return (self._register_constant(_registers(data, width), at),)

    def _register_constant(self, registers: range, at: int) -> Hashable:
        """Return the value in `registers` if it is the same in all threads; 0 for an empty range: the zero register."""
        values = [self._constant(register, at) for register in registers]
        return None if None in values else values[0] if len(values) == 1 else tuple(values) or 0

    def _constant(self, register: int, at: int) -> Hashable:
        """Return a value that is the same in all threads: a number, or ("parameter", its address); None for others."""
        definitions = self.definitions(register, at)
        move = next(iter(definitions)) if len(definitions) == 1 else -1
        if move < 0 or self.role(move) != "move" or self.sources(move) or self.guard(move) != PT:
            return None
        encoding, value = self.low[move] >> 9 & 7, self.low[move] >> 32
        # The zero register, an immediate, or an address in constant memory.
        return {1: 0, 2: value, 4: value, 3: ("parameter", value), 5: ("parameter", value)}.get(encoding)

    def memory(self, at: int) -> str:
        """Return how it accesses shared or global memory, such as "swap" for a CAS; "" if it does not."""
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
        return ControlFlowGraph(self.starts, self.ends, self.predecessors)


def _registers(first: int, width: int) -> range:
    """Return `width` registers from `first` on; empty for the zero register."""
    return range(first, first + width) if first != _RZ else range(0)
