"""What an audit finds: kernels with their atomic instructions, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass

from tfdet.store.audits import Verdict

BASE_KINDS = (
    "float_add_f16",
    "float_add_bf16",
    "float_add_f32",
    "float_add_f64",
    "float_minmax",
    "int_add",
    "int_minmax",
    "incdec",
    "bitop",
    "exch",
    "cas",
)
"""What an atomic does.  Packed and vector forms (f16x2, f32x4) count as one instruction of their element's kind."""

KINDS = tuple(kind + space for kind in BASE_KINDS for space in ("", "_shared"))
"""Every kind an instruction can have; `_shared` is on-chip memory, the rest global or generic."""


@dataclass(frozen=True, order=True)
class ReadFault:
    """A place of a file that could not be read."""

    offset: int  # bytes from the file's start
    message: str


@dataclass(frozen=True, order=True)
class Kernel:
    """A GPU function with at least one atomic instruction; copies in one library and architecture are one."""

    library: str
    arch: str  # "sm_70" read from machine code, "compute_70" read from PTX
    name: str  # mangled
    atomics: dict[str, int]  # kind -> instructions
    order_dependent: Verdict  # can the result depend on the order in which threads come?
    reason: str


@dataclass(frozen=True)
class LibraryAudit:
    """All that one file holds."""

    library: str
    sass: tuple[str, ...]  # architectures with machine code
    ptx: tuple[str, ...]  # virtual architectures with PTX
    kernels: tuple[Kernel, ...]  # sorted; only those with an atomic
    kernel_counts: dict[str, int]  # architecture -> kernels in all, with or without atomics
    names: tuple[str, ...]  # of every kernel, with or without atomics; mangled, sorted
    faults: tuple[ReadFault, ...]
