"""Reader of files that are GPU code, not libraries with GPU code: cubins, PTX and fatbins, as Triton writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Literal

from tfdet.audit.cubin import built_for
from tfdet.audit.elf import MACHINE_CUDA, Elf
from tfdet.audit.fatbin import MAGIC_BYTES, Element, iter_elements
from tfdet.audit.model import ReadFault

SUFFIXES = (".cubin", ".fatbin", ".ptx")

_ELF = b"\x7fELF"  # excludes libraries that contain PTX near their start
_HEAD = 4096  # bytes from the start of PTX that are searched for its target
_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d{2,3})", re.M)


def without_redundant_ptx(names: Iterable[str]) -> list[str]:
    """Return the names, sorted, without the PTX files that have a cubin of the same name, compiled from the PTX."""
    unique = set(names)
    return sorted(
        name for name in unique if not (name.endswith(".ptx") and str(PurePath(name).with_suffix(".cubin")) in unique)
    )


def elements_without_elf(data: memoryview, report: Callable[[ReadFault], None]) -> Iterator[Element]:
    """Yield the elements of a file that is a fatbin or PTX; nothing for other files."""
    if data[:4] == MAGIC_BYTES:
        yield from iter_elements(data, 0, len(data), report)
    elif data[:4] != _ELF and (target := _TARGET.search(bytes(data[:_HEAD]))):
        yield _single_element(data, "ptx", int(target[1]))


def elements_of_cubin(elf: Elf) -> list[Element]:
    """Return the file as one element if it is a cubin, else an empty list."""
    return [_single_element(elf.data, "elf", built_for(elf))] if elf.machine == MACHINE_CUDA else []


def _single_element(data: memoryview, kind: Literal["ptx", "elf"], arch: int) -> Element:
    return Element(0, 0, len(data), compressed_size=0, uncompressed_size=0, arch=arch, kind=kind, flags=0)
