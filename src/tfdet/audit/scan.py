"""The scan of one library file for GPU kernels and their atomics; the file is mapped into memory, not read."""

from __future__ import annotations

import mmap
import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfdet.audit import classify, fatbin, sass, standalone_code
from tfdet.audit.cas_analysis import Dataflow, classify_atomics
from tfdet.audit.cubin import Cubin, read_cubin
from tfdet.audit.elf import MACHINE_X86_64, ElfError, read_elf
from tfdet.audit.fatbin import Element, PayloadError, iter_elements, read_payload
from tfdet.audit.model import Kernel, LibraryAudit, ReadFault
from tfdet.audit.ptx import Ptx, PtxDataflow, PtxFunction
from tfdet.audit.sass_dataflow import SassDataflow
from tfdet.base.untrusted import open_file
from tfdet.store.audits import Verdict

_MIN_PARALLEL_BYTES = 32 << 20
"""Bytes of code below which starting processes takes longer than it saves."""
_CHUNK_COUNT = 32  # more chunks than processes: chunks take different times
_UNKNOWN_ELEMENT_TYPE: tuple[Verdict, str] = (
    "unresolved",
    "reduction of a tensor, whose element type is not in the code",
)


@dataclass
class _Function:
    """The atomics of all copies of one function in one library and architecture."""

    atomics: Counter[str] = field(default_factory=Counter)  # {kind: number of instructions}
    loops: list[tuple[Verdict, str]] = field(default_factory=list)  # of each compare-and-swap and tensor reduction
    uses_old_sum: bool = False  # whether the old value of an integer add is used
    initializing: Counter[str] = field(
        default_factory=Counter
    )  # {kind: number} of the exchanges that initialize a value

    def add(self, other: _Function) -> None:
        self.atomics += other.atomics
        self.loops += other.loops
        self.uses_old_sum |= other.uses_old_sum
        self.initializing += other.initializing

    def classify(self, flow: Dataflow[Any], swaps: Iterable[int], exchanges: Mapping[int, str]) -> None:
        """Add the verdicts of the compare-and-swaps of one copy, by its data flow."""
        loops, initializing = classify_atomics(flow, list(swaps), list(exchanges))
        self.loops += loops
        self.initializing.update(exchanges[exchange] for exchange in initializing)


@dataclass
class _AtomicSites:
    """The atomics of one copy of a function whose classification requires data flow."""

    swaps: list[int] = field(default_factory=list)  # positions
    exchanges: dict[int, str] = field(default_factory=dict)  # {position: kind}

    def add(self, kind: str, at: int) -> None:
        if kind.startswith("cas"):
            self.swaps.append(at)
        elif kind.startswith("exch"):
            self.exchanges[at] = kind


@dataclass
class _ScanState:
    """The findings so far in one library."""

    functions: dict[tuple[str, str], _Function] = field(default_factory=partial(defaultdict, _Function))  # (arch, name)
    kernels: dict[str, set[str]] = field(default_factory=partial(defaultdict, set))  # {arch: names}
    archs: dict[str, set[int]] = field(default_factory=lambda: {"elf": set(), "ptx": set()})
    faults: list[ReadFault] = field(default_factory=list)

    def add(self, other: _ScanState) -> None:
        """Add the findings of another process in other elements of the same library."""
        for key, function in other.functions.items():
            self.functions[key].add(function)
        for arch, names in other.kernels.items():
            self.kernels[arch] |= names
        self.faults += other.faults


def scan_library(path: Path, display_name: str, archs: Container[str] | None = None) -> LibraryAudit:
    """Read all GPU code of the library at `path`; `archs` ("sm_70", "compute_80") limits which code is read.

    Damaged code becomes a fault, and the rest is still read; a file without GPU code gives an empty audit.
    DataError if the file cannot be read.
    """
    findings = _ScanState()
    selected: list[Element] = []
    with _mapped(path) as data:
        for element in _elements(data, findings):
            if element.kind != "other":
                findings.archs[element.kind].add(element.arch)
                if archs is None or _display_arch(element) in archs:
                    selected.append(element)
        if sum(element.stored_size for element in selected) < _MIN_PARALLEL_BYTES:
            _scan_elements(data, selected, findings)
            return _to_library_audit(display_name, findings)
    _scan_in_parallel(path, selected, findings)
    return _to_library_audit(display_name, findings)


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    """Map the file into memory, so that only the bytes that are used are read from the disk."""
    with open_file(path) as source:
        try:
            mapped = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            yield memoryview(b"")
            return
    # Not closed, because an exception may still refer to NumPy views of the mapping; it ends with the last of them.
    yield memoryview(mapped)


def _scan_in_parallel(path: Path, elements: list[Element], findings: _ScanState) -> None:
    """Scan the elements in several processes, each with its own mapping of the file."""
    workers = len(os.sched_getaffinity(0))
    chunks = [elements[first::_CHUNK_COUNT] for first in range(_CHUNK_COUNT)]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        for chunk_findings in pool.map(_scan_chunk, [path] * _CHUNK_COUNT, chunks):
            findings.add(chunk_findings)


def _scan_chunk(path: Path, elements: list[Element]) -> _ScanState:
    findings = _ScanState()
    with _mapped(path) as data:
        _scan_elements(data, elements, findings)
    return findings


def _to_library_audit(library: str, findings: _ScanState) -> LibraryAudit:
    kernels = []
    for (arch, name), function in findings.functions.items():
        verdict, reason = classify.verdict(
            function.atomics, function.loops, function.uses_old_sum, function.initializing
        )
        atomics = dict(sorted(function.atomics.items()))
        kernels.append(Kernel(library, arch, name, atomics, verdict, reason))
    return LibraryAudit(
        library=library,
        sass=tuple(f"sm_{arch}" for arch in sorted(findings.archs["elf"])),
        ptx=tuple(f"compute_{arch}" for arch in sorted(findings.archs["ptx"])),
        kernels=tuple(sorted(kernels, key=lambda kernel: (kernel.library, kernel.arch, kernel.name))),
        kernel_counts={arch: len(names) for arch, names in sorted(findings.kernels.items())},
        names=tuple(sorted(set().union(*findings.kernels.values()))),
        faults=tuple(sorted(findings.faults)),
    )


def _elements(data: memoryview, findings: _ScanState) -> Iterator[Element]:
    """Yield the elements of the library's fatbins; those of the file itself if it is a fatbin, PTX or a cubin."""
    is_standalone = False
    for element in standalone_code.elements_without_elf(data, findings.faults.append):
        is_standalone = True
        yield element
    if is_standalone:
        return
    try:
        elf = read_elf(data)
        if cubin := standalone_code.elements_of_cubin(elf):
            yield from cubin
            return
        if elf.machine != MACHINE_X86_64:
            raise ElfError(18, f"an ELF file for machine {elf.machine}, not x86-64 ({MACHINE_X86_64})")
    except ElfError as error:
        findings.faults.append(ReadFault(error.offset, str(error)))
        return
    for row in elf.find(fatbin.SECTION):
        section = elf.sections[row]
        offset, size = int(section["offset"]), int(section["size"])
        if not elf.fits(row):
            findings.faults.append(ReadFault(offset, f"{size} bytes of .nv_fatbin do not fit the file: truncated?"))
            size = max(0, len(data) - offset)
        yield from iter_elements(data, offset, size, findings.faults.append)


def _display_arch(element: Element) -> str:
    return f"{'sm' if element.kind == 'elf' else 'compute'}_{element.arch}"


def _scan_elements(data: memoryview, elements: list[Element], findings: _ScanState) -> None:
    for element in elements:
        try:
            payload = read_payload(data, element)
            if element.kind == "elf":
                _scan_cubin(read_cubin(payload), element.arch, findings)
            else:
                _scan_ptx(Ptx(bytes(payload)), _display_arch(element), findings)
        except (PayloadError, ElfError) as error:
            findings.faults.append(ReadFault(element.payload_offset, f"{_display_arch(element)}: {error}"))


def _scan_cubin(cubin: Cubin, arch: int, findings: _ScanState) -> None:
    arch_name = f"sm_{arch}"
    findings.kernels[arch_name] |= cubin.kernels()
    if arch < sass.FIRST_ARCH:
        return
    sites_by_function: dict[int, _AtomicSites] = defaultdict(_AtomicSites)
    for atomic in atomics(cubin, arch):
        function = findings.functions[arch_name, cubin.name(atomic.function)]
        kind = sass.kind(atomic.low, atomic.high, arch)
        function.atomics[kind] += 1
        sites_by_function[atomic.function].add(kind, atomic.number)
        if sass.has_indirect_type(atomic.low):
            function.loops.append(_UNKNOWN_ELEMENT_TYPE)
        elif kind.startswith("int_add") and sass.returns_old_value(atomic.low):
            function.uses_old_sum = True
    for index, sites in sites_by_function.items():
        if sites.swaps:
            flow = SassDataflow(cubin.code(index), arch)
            findings.functions[arch_name, cubin.name(index)].classify(flow, sites.swaps, sites.exchanges)


def _scan_ptx(ptx: Ptx, arch: str, findings: _ScanState) -> None:
    findings.kernels[arch] |= {function.name for function in ptx.functions if function.is_kernel}
    sites_by_function: dict[PtxFunction, _AtomicSites] = defaultdict(_AtomicSites)
    for atomic in ptx.atomics():
        function = findings.functions[arch, atomic.function.name]
        function.atomics[atomic.kind] += 1
        sites_by_function[atomic.function].add(atomic.kind, atomic.offset)
        if ptx.text.startswith(b"cp.reduce.async.bulk.tensor", atomic.offset):
            function.loops.append(_UNKNOWN_ELEMENT_TYPE)
        elif atomic.kind.startswith("int_add") and ptx.text.startswith(b"atom", atomic.offset):
            function.uses_old_sum = True
    for ptx_function, sites in sites_by_function.items():
        if sites.swaps:
            flow = PtxDataflow(ptx.text, ptx_function)
            exchanges = {flow.number(offset): kind for offset, kind in sites.exchanges.items()}
            findings.functions[arch, ptx_function.name].classify(flow, map(flow.number, sites.swaps), exchanges)


class Atomic(NamedTuple):
    """An atomic instruction of a cubin."""

    function: int  # index of its function in the cubin
    number: int  # of instructions before it in the function
    low: int  # the low 64 bits of the instruction
    high: int  # the high 64 bits


def atomics(cubin: Cubin, arch: int) -> list[Atomic]:
    """Return all atomic instructions of the cubin, in the order of the code."""
    if not len(cubin.rows):
        return []
    first, last = int(cubin.starts[0]), int(cubin.ends.max())
    code = np.frombuffer(cubin.elf.data, np.uint8, (last - first) // sass.INSTRUCTION * sass.INSTRUCTION, first)
    instructions = sass.find_atomics(code, arch)
    offsets = first + instructions * sass.INSTRUCTION
    functions = np.searchsorted(cubin.starts, offsets, "right") - 1
    numbers = (offsets - cubin.starts[functions]) // sass.INSTRUCTION
    halves = code.view("<u8").reshape(-1, 2)[instructions]
    is_inside = offsets + sass.INSTRUCTION <= cubin.ends[functions]  # the gaps between sections hold no code
    positions = np.column_stack([functions, numbers])[is_inside].tolist()
    return [Atomic(*position, *pair) for position, pair in zip(positions, halves[is_inside].tolist(), strict=True)]
