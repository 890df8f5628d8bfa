"""The results of an audit: kernels with their atomic instructions, and faults of unreadable files."""

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
"""Kinds of atomic instructions.  A packed or vector form (f16x2, f32x4) counts as one of its element's kind."""

KINDS = tuple(kind + space for kind in BASE_KINDS for space in ("", "_shared"))
"""All kinds, with their state space: `_shared` is shared memory, without suffix it is global or generic."""


@dataclass(frozen=True, order=True)
class ReadFault:
    """A place of a file that could not be read."""

    offset: int  # bytes from the file's start
    message: str


@dataclass(frozen=True, order=True)
class Kernel:
    """A GPU function with at least one atomic instruction; copies of it in one library and architecture are merged."""

    library: str
    arch: str  # "sm_70" read from machine code, "compute_70" read from PTX
    name: str  # mangled
    atomics: dict[str, int]  # kind -> instructions
    order_dependent: Verdict  # whether the result can depend on the order of threads
    reason: str


@dataclass(frozen=True)
class LibraryAudit:
    """The audit of one file."""

    library: str
    sass: tuple[str, ...]  # architectures with machine code
    ptx: tuple[str, ...]  # virtual architectures with PTX
    kernels: tuple[Kernel, ...]  # sorted; only those with an atomic
    kernel_counts: dict[str, int]  # architecture -> number of kernels, with or without atomics
    names: tuple[str, ...]  # of every kernel, with or without atomics; mangled, sorted
    faults: tuple[ReadFault, ...]
