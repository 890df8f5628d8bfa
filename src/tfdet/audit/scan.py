"""One library file to its kernels: the file is mapped, never read whole, and each architecture looked at once."""

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
_CHUNK_COUNT = 32  # some are finished sooner than others
_TYPE_ELSEWHERE: tuple[Verdict, str] = ("unresolved", "reduction of a tensor, whose element type is not in the code")


@dataclass
class _Function:
    """What the copies of one function in one library and architecture hold together."""

    atomics: Counter[str] = field(default_factory=Counter)
    loops: list[tuple[Verdict, str]] = field(default_factory=list)  # of all that needs a look
    slots: bool = False  # is an integer add's old value used?
    started: Counter[str] = field(default_factory=Counter)  # exchanges that set a start value

    def add(self, other: _Function) -> None:
        self.atomics += other.atomics
        self.loops += other.loops
        self.slots |= other.slots
        self.started += other.started

    def explain(self, flow: Dataflow[Any], swaps: Iterable[int], exchanges: Mapping[int, str]) -> None:
        loops, started = classify_atomics(flow, list(swaps), list(exchanges))
        self.loops += loops
        self.started.update(exchanges[exchange] for exchange in started)


@dataclass
class _AtomicSites:
    """Where one copy of a function has what takes its data flow to judge."""

    swaps: list[int] = field(default_factory=list)
    exchanges: dict[int, str] = field(default_factory=dict)  # place: kind

    def add(self, kind: str, at: int) -> None:
        if kind.startswith("cas"):
            self.swaps.append(at)
        elif kind.startswith("exch"):
            self.exchanges[at] = kind


@dataclass
class _ScanState:
    functions: dict[tuple[str, str], _Function] = field(default_factory=partial(defaultdict, _Function))
    kernels: dict[str, set[str]] = field(default_factory=partial(defaultdict, set))
    archs: dict[str, set[int]] = field(default_factory=lambda: {"elf": set(), "ptx": set()})
    faults: list[ReadFault] = field(default_factory=list)

    def add(self, other: _ScanState) -> None:
        """Take over what another process found in other elements of the same library."""
        for key, function in other.functions.items():
            self.functions[key].add(function)
        for arch, names in other.kernels.items():
            self.kernels[arch] |= names
        self.faults += other.faults


def scan_library(path: Path, shown: str, archs: Container[str] | None = None) -> LibraryAudit:
    """All GPU code of the library at `path`; `archs` ("sm_70", "compute_80") limits which code is read.

    What cannot be read becomes a fault, and the rest is still read; a file without GPU code gives an empty audit.
    DataError where the file cannot be read.
    """
    findings = _ScanState()
    wanted: list[Element] = []
    with _mapped(path) as data:
        for element in _elements(data, findings):
            if element.kind != "other":
                findings.archs[element.kind].add(element.arch)
                if archs is None or _display_arch(element) in archs:
                    wanted.append(element)
        if sum(element.stored_size for element in wanted) < _MIN_PARALLEL_BYTES:
            _scan_elements(data, wanted, findings)
            return _audit(shown, findings)
    _scan_together(path, wanted, findings)
    return _audit(shown, findings)


@contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    """The file's bytes, read from the disk only where they are looked at."""
    with open_file(path) as source:
        try:
            mapped = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            yield memoryview(b"")
            return
    # Never closed: NumPy's views of it may live on in an exception.  It goes with the last of them.
    yield memoryview(mapped)


def _scan_together(path: Path, elements: list[Element], findings: _ScanState) -> None:
    """Share the elements among processes; each maps the file by itself."""
    workers = len(os.sched_getaffinity(0))
    pieces = [elements[first::_CHUNK_COUNT] for first in range(_CHUNK_COUNT)]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        for found in pool.map(_scan_piece, [path] * _CHUNK_COUNT, pieces):
            findings.add(found)


def _scan_piece(path: Path, elements: list[Element]) -> _ScanState:
    findings = _ScanState()
    with _mapped(path) as data:
        _scan_elements(data, elements, findings)
    return findings


def _audit(shown: str, findings: _ScanState) -> LibraryAudit:
    kernels = []
    for (arch, name), function in findings.functions.items():
        answer, reason = classify.verdict(function.atomics, function.loops, function.slots, function.started)
        atomics = dict(sorted(function.atomics.items()))
        kernels.append(Kernel(shown, arch, name, atomics, answer, reason))
    return LibraryAudit(
        library=shown,
        sass=tuple(f"sm_{arch}" for arch in sorted(findings.archs["elf"])),
        ptx=tuple(f"compute_{arch}" for arch in sorted(findings.archs["ptx"])),
        kernels=tuple(sorted(kernels, key=lambda kernel: (kernel.library, kernel.arch, kernel.name))),
        kernel_counts={arch: len(names) for arch, names in sorted(findings.kernels.items())},
        names=tuple(sorted(set().union(*findings.kernels.values()))),
        faults=tuple(sorted(findings.faults)),
    )


def _elements(data: memoryview, findings: _ScanState) -> Iterator[Element]:
    """All elements of the library's fatbins, or of what is GPU code by itself."""
    bare = False
    for element in standalone_code.elements_without_elf(data, findings.faults.append):
        bare = True
        yield element
    if bare:
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
    shown = f"sm_{arch}"
    findings.kernels[shown] |= cubin.kernels()
    if arch < sass.FIRST_ARCH:
        return
    places: dict[int, _AtomicSites] = defaultdict(_AtomicSites)
    for atomic in atomics(cubin, arch):
        function = findings.functions[shown, cubin.name(atomic.function)]
        kind = sass.kind(atomic.low, atomic.high, arch)
        function.atomics[kind] += 1
        places[atomic.function].add(kind, atomic.number)
        if sass.has_indirect_type(atomic.low):
            function.loops.append(_TYPE_ELSEWHERE)
        elif kind.startswith("int_add") and sass.returns_old_value(atomic.low):
            function.slots = True
    for index, some in places.items():
        if some.swaps:
            flow = SassDataflow(cubin.code(index), arch)
            findings.functions[shown, cubin.name(index)].explain(flow, some.swaps, some.exchanges)


def _scan_ptx(ptx: Ptx, arch: str, findings: _ScanState) -> None:
    findings.kernels[arch] |= {function.name for function in ptx.functions if function.is_kernel}
    places: dict[PtxFunction, _AtomicSites] = defaultdict(_AtomicSites)
    for atomic in ptx.atomics():
        function = findings.functions[arch, atomic.function.name]
        function.atomics[atomic.kind] += 1
        places[atomic.function].add(atomic.kind, atomic.offset)
        if ptx.text.startswith(b"cp.reduce.async.bulk.tensor", atomic.offset):
            function.loops.append(_TYPE_ELSEWHERE)
        elif atomic.kind.startswith("int_add") and ptx.text.startswith(b"atom", atomic.offset):
            function.slots = True
    for body, some in places.items():
        if some.swaps:
            flow = PtxDataflow(ptx.text, body)
            exchanges = {flow.number(offset): kind for offset, kind in some.exchanges.items()}
            findings.functions[arch, body.name].explain(flow, map(flow.number, some.swaps), exchanges)


class Atomic(NamedTuple):
    """An atomic instruction."""

    function: int  # index in the cubin
    number: int  # instructions before it in the function
    low: int
    high: int


def atomics(cubin: Cubin, arch: int) -> list[Atomic]:
    """All atomic instructions of the cubin, in the order of the code."""
    if not len(cubin.rows):
        return []
    first, last = int(cubin.starts[0]), int(cubin.ends.max())
    code = np.frombuffer(cubin.elf.data, np.uint8, (last - first) // sass.INSTRUCTION * sass.INSTRUCTION, first)
    hits = sass.find_atomics(code, arch)
    at = first + hits * sass.INSTRUCTION
    index = np.searchsorted(cubin.starts, at, "right") - 1
    numbers = (at - cubin.starts[index]) // sass.INSTRUCTION
    halves = code.view("<u8").reshape(-1, 2)[hits]
    inside = at + sass.INSTRUCTION <= cubin.ends[index]  # the gaps between sections hold no code
    found = np.column_stack([index, numbers])[inside].tolist()
    return [Atomic(*where, *both) for where, both in zip(found, halves[inside].tolist(), strict=True)]
