"""Build small libraries with GPU code, and wheels of them, byte by byte: the audit's test input, valid and damaged."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfdet.base.paths import Project

X86_64, AARCH64, CUDA = 62, 183, 190  # machines of an ELF header
FLOAT_ADD = (0x98E, 3 << 9)  # RED.ADD.F32, low and high half, as nvdisasm of sm_70 reads it
INT_ADD = (0x98E, 0)  # RED.ADD
NOP = (0x7918, 0)

Code = Mapping[str, Sequence[tuple[int, int]]]
"""{mangled name: instructions}"""

# Mangled names of kernels. CROP belongs to crop-and-resize-backprop, a known source of nondeterminism.
CROP = "_ZN10tensorflow12_GLOBAL__N_132CropAndResizeBackpropImageKernelIfEEviPKfS3_PKiiiiiiiiPT_i"
FILL = "_ZN10tensorflow7functor10FillKernelIiEEvT_"
SEGMENT_REDUCE = "_ZN10tensorflow19SegmentReduceVectorKernelIfEEvT_"
UNKNOWN_KERNEL = "_ZN10tensorflow13NobodyKnowsItIfEEvPT_"


def elf(machine: int, sections: Sequence[tuple[str, int, int, bytes]], links: Mapping[str, int] = {}) -> bytes:
    """Return an ELF file of these sections: (name, type, flags, content).  links: {name: sh_link of the section}."""
    names, table, body = b"\0", [bytes(64)], b""
    for name, kind, flags, content in [*sections, (".shstrtab", 3, 0, b"")]:
        offset = len(names)
        names += name.encode() + b"\0"
        if name == ".shstrtab":
            content = names
        body += bytes(-len(body) % 16)
        table.append(
            struct.pack(
                "<IIQQQQIIQQ", offset, kind, flags, 0, 64 + len(body), len(content), links.get(name, 0), 0, 16, 0
            )
        )
        body += content
    body += bytes(-len(body) % 16)
    header = struct.pack("<4sBBB9sHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, b"", 2, machine, 1, 0, 0, 64 + len(body),
                         0, 64, 0, 0, 64, len(table), len(table) - 1)  # fmt: skip
    return header + body + b"".join(table)


def cubin(code: Code) -> bytes:
    """Return a cubin of sm_70 with these kernels."""
    strings, symbols = b"\0", bytes(24)
    sections = []
    for number, (name, instructions) in enumerate(code.items(), 1):
        symbols += struct.pack("<IBBHQQ", len(strings), 0x12, 0x10, number, 0, 16 * len(instructions))
        strings += name.encode() + b"\0"
        content = b"".join(struct.pack("<QQ", *instruction) for instruction in instructions)
        sections.append((f".text.{name}", 1, 0x6, content))
    sections += [(".symtab", 2, 0, symbols), (".strtab", 3, 0, strings)]
    return elf(CUDA, sections, {".symtab": len(code) + 2})


def element(payload: bytes, arch: int, *, kind: int = 2, flags: int = 0, packed: int = 0, unpacked: int = 0) -> bytes:
    """Return one element of a fatbin.

    kind: 1 for PTX, 2 for a cubin.  packed, unpacked: the sizes that a compressed element declares.
    """
    padded = payload + bytes(-len(payload) % 8)
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(padded), packed, 0, 0, 0, arch, 0, 0, flags, 0,
                       unpacked) + padded  # fmt: skip


def fatbin(*elements: bytes) -> bytes:
    """Return a fatbin: its header, and the elements."""
    body = b"".join(elements)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def library(path: Path, gpu: bytes | None, constants: Sequence[str] = (), machine: int = X86_64) -> Path:
    """Return a shared library; `gpu`: its section of fatbins; `constants`: its NUL-terminated strings."""
    rodata = b"\0" + b"".join(text.encode() + b"\0" for text in constants)
    sections = [(".rodata", 1, 2, rodata)] + ([(".nv_fatbin", 1, 2, gpu)] if gpu is not None else [])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf(machine, sections))
    return path


def one_kernel(name: str = CROP, instruction: tuple[int, int] = FLOAT_ADD, archs: Sequence[int] = (70,)) -> bytes:
    """Return a fatbin with one kernel, of one instruction and a NOP, for each architecture."""
    return fatbin(*(element(cubin({name: [instruction, NOP]}), arch) for arch in archs))


def tfdet_audit(project: Project, folder: Path, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `tfdet audit` in `folder`, with a cache there."""
    return subprocess.run(
        [sys.executable, "-m", "tfdet", "audit", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "TFDET_ROOT": str(project.root), "XDG_CACHE_HOME": str(folder / "cache"), **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def wheel(
    folder: Path,
    members: Mapping[str, bytes],
    version: str = "9.9.9",
    name: str = "tensorflow",
    tag: str = "cp311-cp311-manylinux_2_27_x86_64",
) -> Path:
    """Write a wheel that pip accepts, by default for CPython 3.11; return its path."""
    path = folder / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/RECORD", "")
    return path
