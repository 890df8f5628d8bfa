"""A cubin: the ELF file that holds one architecture's machine code, one section per function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfdet.audit.elf import FLAG_EXEC, MACHINE_CUDA, Elf, ElfError, read_elf
from tfdet.audit.sass import INSTRUCTION

_PREFIX = b".text."
_SYMBOL_FUNC = 2  # STT_FUNC, the low bits of a symbol's `info`
_ABI_VERSION = 8  # offset of the ABI version in an ELF header (EI_ABIVERSION)
_CUDA_ENTRY = 0x10  # STO_CUDA_ENTRY in a symbol's `other`: a kernel, not a device function


def built_for(elf: Elf) -> int:
    """Return the architecture in a cubin's header, such as 90 for sm_90.

    Up to ABI version 7 it is the lowest byte of the flags; from 8 on, which CUDA 13 writes, the one above.
    """
    return elf.flags >> (8 if elf.data[_ABI_VERSION] >= 8 else 0) & 0xFF


@dataclass(frozen=True)
class Cubin:
    """The functions of a cubin, in the order of their code; arrays have one row per function."""

    elf: Elf
    rows: NDArray[np.int64]  # section numbers
    starts: NDArray[np.int64]  # bytes from the cubin's start
    ends: NDArray[np.int64]

    def name(self, index: int) -> str:
        """Return the function's mangled name."""
        return self.elf.name(int(self.rows[index]))[len(_PREFIX) :].decode("utf-8", "backslashreplace")

    def code(self, index: int) -> memoryview:
        """Return the function's machine code, without an incomplete instruction at its end."""
        start, end = int(self.starts[index]), int(self.ends[index])
        return self.elf.data[start : end - (end - start) % INSTRUCTION]

    def kernels(self) -> set[str]:
        """Return the names of the kernels: functions that the host can launch."""
        symbols = self.elf.symbols()
        entry = ((symbols["info"] & 0xF) == _SYMBOL_FUNC) & ((symbols["other"] & _CUDA_ENTRY) != 0)
        launched = set(symbols["section"][entry].tolist())
        return {self.name(index) for index, row in enumerate(self.rows.tolist()) if row in launched}


def read_cubin(data: memoryview) -> Cubin:
    """Read a cubin; ElfError if `data` is not one, or a function's code lies outside it."""
    elf = read_elf(data)
    if elf.machine != MACHINE_CUDA:
        # 18 is the offset of e_machine in the header.
        raise ElfError(18, f"an ELF file for machine {elf.machine}, not CUDA ({MACHINE_CUDA})")
    executable = np.flatnonzero(elf.sections["flags"] & FLAG_EXEC)
    rows = np.array([row for row in executable.tolist() if elf.name(row).startswith(_PREFIX)], np.int64)
    for row in rows.tolist():
        if not elf.fits(row):
            raise ElfError(int(elf.sections["offset"][row]) % (1 << 62), f"code of {elf.name(row)!r} is beyond the end")
    rows = rows[np.argsort(elf.sections["offset"][rows], kind="stable")]
    starts = elf.sections["offset"][rows].astype(np.int64)
    if np.any((starts - starts[:1]) % INSTRUCTION):
        raise ElfError(0, "functions that do not start at a whole instruction")
    return Cubin(elf, rows, starts, starts + elf.sections["size"][rows].astype(np.int64))
