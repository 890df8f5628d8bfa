"""Files that are GPU code by themselves, as Triton and other compilers keep them: a cubin, PTX, a fatbin."""

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

_ELF = b"\x7fELF"  # PTX inside a library may be as near to its start
_HEAD = 4096  # bytes in which PTX names its target
_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d{2,3})", re.M)


def without_redundant_ptx(names: Iterable[str]) -> list[str]:
    """Without the PTX beside a cubin of the same name: that was made of it, and is what the driver loads."""
    known = set(names)
    return sorted(
        name for name in known if not (name.endswith(".ptx") and str(PurePath(name).with_suffix(".cubin")) in known)
    )


def elements_without_elf(data: memoryview, report: Callable[[ReadFault], None]) -> Iterator[Element]:
    """Of a fatbin or of PTX; none where it is neither."""
    if data[:4] == MAGIC_BYTES:
        yield from iter_elements(data, 0, len(data), report)
    elif data[:4] != _ELF and (target := _TARGET.search(bytes(data[:_HEAD]))):
        yield _single_element(data, "ptx", int(target[1]))


def elements_of_cubin(elf: Elf) -> list[Element]:
    """The file as one element, if it is a cubin."""
    return [_single_element(elf.data, "elf", built_for(elf))] if elf.machine == MACHINE_CUDA else []


def _single_element(data: memoryview, kind: Literal["ptx", "elf"], arch: int) -> Element:
    return Element(0, 0, len(data), compressed_size=0, uncompressed_size=0, arch=arch, kind=kind, flags=0)
