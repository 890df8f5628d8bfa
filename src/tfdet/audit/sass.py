"""Decoder of atomic instructions in SASS, the machine code, of Volta and later GPUs.

An instruction has 128 bits, with the opcode in the lowest 12.  Bits 9 to 11 of the opcode select only the operands'
form, so the decoder compares the other 9.  The fields were derived from the output of nvdisasm of CUDA 12.4 for each
of their values, on each architecture.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

INSTRUCTION = 16
"""Bytes of an instruction."""

FIRST_ARCH = 70
"""Volta.  Instructions of older architectures have 64 bits and another encoding."""

OPCODE = 0x1FF  # the mask of an opcode
_ATOM, _ATOM_CAS, _ATOMS, _ATOMS_CAS, _RED = 0x18A, 0x18B, 0x18C, 0x18D, 0x18E
_ATOMG, _ATOMG_CAS = 0x1A8, 0x1A9
_ATOM_FLOAT, _ATOMG_FLOAT, _RED_FLOAT = 0x1A2, 0x1A3, 0x1A6  # Hopper moved float atomics here
_UTMAREDG, _UBLKRED, _REDAS = 0x1B6, 0x1BB, 0x1BE  # Hopper's bulk and asynchronous reductions

CAS = frozenset({_ATOM_CAS, _ATOMS_CAS, _ATOMG_CAS})
_VOLTA = frozenset({_ATOM, _ATOM_CAS, _ATOMS, _ATOMS_CAS, _RED, _ATOMG, _ATOMG_CAS})
_HOPPER = _VOLTA | {_ATOM_FLOAT, _ATOMG_FLOAT, _RED_FLOAT, _UTMAREDG, _UBLKRED, _REDAS}
_NO_REGISTER = 255
_AMPERE_ARCH = 80
_HOPPER_ARCH = 90

# Bits 87 to 89 or 90, operation; beyond these: SAFEADD of ATOMG, arrivals and POPC.INC of the others.
_OPERATIONS = ("add", "minmax", "minmax", "incdec", "incdec", "bitop", "bitop", "bitop", "exch")
# Bits 73 on, type of Volta to Ada; all others are integers.
_FLOATS = {3: "f32", 4: "f16", 6: "f64"}
# Bits 73 to 76, type of Hopper's float atomics: f16 x 2, 4, 8; bf16 x 2, 4, 8; f32 x 1, 2, 4, with FTZ or not; f64.
_HOPPER_FLOATS = dict.fromkeys((0, 1, 2), "f16") | dict.fromkeys((3, 4, 5), "bf16")
_HOPPER_FLOATS |= dict.fromkeys(range(9, 15), "f32") | {15: "f64"}
# Bits 81 to 84, type of bulk reductions.
_BULK_FLOATS = {4: "f16", 5: "f32", 6: "f32", 7: "f64", 8: "bf16"}


def find_atomics(code: NDArray[np.uint8], arch: int) -> NDArray[np.int64]:
    """Return the numbers of the instructions in `code` (whole instructions) that are atomics of the architecture."""
    opcodes = code.view("<u2")[:: INSTRUCTION // 2] & OPCODE
    return np.flatnonzero(_table(arch)[opcodes])


def is_atomic(opcode: int, arch: int) -> bool:
    return bool(_table(arch)[opcode])


def kind(low: int, high: int, arch: int) -> str:
    """Return the kind, such as `float_add_f32_shared`, of the atomic instruction with these two 64-bit halves."""
    opcode = low & OPCODE
    if opcode in CAS:
        return "cas" + _space(opcode == _ATOMS_CAS)
    operation = high >> 23 & 0xF
    if opcode == _UBLKRED:
        return _operation_kind(operation & 7, _BULK_FLOATS.get(high >> 17 & 0xF)) + _space(high >> 9 & 1 == 1)
    if opcode in (_ATOM_FLOAT, _ATOMG_FLOAT, _RED_FLOAT):
        return _operation_kind(operation >> 1 & 3, _HOPPER_FLOATS.get(high >> 9 & 0xF, "f32"))
    if opcode in (_RED, _UTMAREDG):
        operation &= 7
    elif operation >= len(_OPERATIONS):
        return "int_add" if opcode == _ATOMG else "incdec" + _space(opcode == _ATOMS)
    has_floats = arch < _HOPPER_ARCH and opcode in (_ATOM, _ATOMG, _RED)
    width = 7 if arch < _AMPERE_ARCH else 15
    floating = _FLOATS.get(high >> 9 & width) if has_floats else None
    return _operation_kind(operation, floating) + _space(opcode in (_ATOMS, _REDAS))


def has_indirect_type(low: int) -> bool:
    """Return whether this is a tensor reduction, whose element type is in memory; `kind` returns "int_add" for it."""
    return low & OPCODE == _UTMAREDG


def returns_old_value(low: int) -> bool:
    """Return whether the atomic instruction returns the value that was in memory before."""
    return low & OPCODE != _RED and low >> 16 & 0xFF != _NO_REGISTER


def _operation_kind(operation: int, floating: str | None) -> str:
    """Return the kind of an operation on integers, or on floats of the type `floating`."""
    name = _OPERATIONS[operation]
    if name == "add":
        return f"float_add_{floating}" if floating else "int_add"
    if name == "minmax":
        return "float_minmax" if floating else "int_minmax"
    return name


def _space(shared: bool) -> str:
    return "_shared" if shared else ""


@cache
def _table(arch: int) -> NDArray[np.bool_]:
    """Return for each opcode whether it is an atomic of the architecture."""
    table = np.zeros(OPCODE + 1, np.bool_)
    table[list(_HOPPER if arch >= _HOPPER_ARCH else _VOLTA)] = True
    return table
