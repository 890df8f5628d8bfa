"""The decoder of machine code against NVIDIA's: each distinct encoding of sm_80 cubins, printed by both.

Usage: python benchmarks/decode.py --against nvdisasm FILE... [--write TABLE]
FILE: a cubin, or a library whose containers are compressed with zstd or not at all.  `--against` names the disassembler
(pip install nvidia-cuda-nvdisasm); `--write` keeps a few of each instruction, as tests/vgpu/kernels/encodings.tsv has
them: give it cubins of your own kernels alone.  Promise: none differs, at most one in a thousand is refused.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "vgpu"), str(HERE.parents[1] / "src")]
import build  # noqa: E402

from tfdet.audit import fatbin  # noqa: E402
from tfdet.audit.cubin import Cubin, read_cubin  # noqa: E402
from tfdet.audit.elf import ElfError  # noqa: E402

BYTES = 16
LOW_BITS = (1 << 41) - 1  # of the upper half: above them are stalls and scoreboards, which the text does not name
HARMLESS = 0x000FE2 << 40  # what NVIDIA's disassembler takes there: zeros are refused
BATCH = 50_000
PER_SHAPE = 2  # encodings of each instruction, modifiers and kinds of operands that --write keeps


def cubins(path: Path) -> Iterator[Cubin]:
    data = memoryview(path.read_bytes())
    with contextlib.suppress(ElfError):
        yield read_cubin(data)
        return
    for element in fatbin.iter_elements(data, 0, len(data), lambda _: None):
        if element.arch == 80 and element.kind == "elf":
            yield read_cubin(memoryview(fatbin.read_payload(data, element)))


def distinct(paths: list[Path]) -> list[tuple[int, int]]:
    found = set()
    for path in paths:
        for cubin in cubins(path):
            for k in range(len(cubin.rows)):
                found.update((low, high & LOW_BITS) for low, high in struct.iter_unpack("<QQ", cubin.code(k)))
    return sorted(found)


def one_space(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def by_nvidia(command: str, encodings: list[tuple[int, int]]) -> list[str]:
    with tempfile.NamedTemporaryFile() as flat:
        flat.write(b"".join(struct.pack("<QQ", low, high | HARMLESS) for low, high in encodings))
        flat.flush()
        done = subprocess.run([command, "-b", "SM80", flat.name], capture_output=True, text=True, check=False)
    lines = {int(at, 16): one_space(text) for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", done.stdout)}
    return [lines.get(BYTES * k, "") for k in range(len(encodings))]


def by_us(library: ctypes.CDLL, encodings: list[tuple[int, int]]) -> list[str]:
    texts = []
    for k, (low, high) in enumerate(encodings):
        made = library.vgpu_sass_text(
            ctypes.c_uint64(low), ctypes.c_uint64(high | HARMLESS), ctypes.c_uint32(BYTES * k)
        )
        texts.append(made.decode())
    return texts


def shape(text: str) -> str:
    return re.sub(r"\b(U?[RPB])\d+|-?0x[0-9a-f]+|\b\d+(\.\d+)?(e[+-]?\d+)?", r"\1#", text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the decoder of sm_80 with NVIDIA's.")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--against", required=True, help="the disassembler's command")
    parser.add_argument("--write", type=Path, help="where a few of each instruction are kept")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(build.build(build.cache()) / "libvgpu.so"))
    library.vgpu_sass_text.restype = ctypes.c_char_p
    encodings = distinct(arguments.files)
    counts: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    rows = []
    for at in range(0, len(encodings), BATCH):
        batch = encodings[at : at + BATCH]
        pairs = zip(batch, by_us(library, batch), by_nvidia(arguments.against, batch), strict=True)
        for k, ((low, high), ours, theirs) in enumerate(pairs):
            outcome = "refused" if ours.startswith("?") else "same" if one_space(ours) == theirs else "differ"
            counts[outcome] += 1
            if outcome != "same" and counts[outcome] <= 20:
                print(f"{outcome}: {ours} | {theirs}")
            kept[shape(theirs)] += 1
            if kept[shape(theirs)] <= PER_SHAPE:
                rows.append(f"{high:016x}{low:016x}\t{BYTES * k:x}\t{theirs}\n")
    print(
        f"{len(encodings)} distinct encodings: "
        + ", ".join(f"{counts[one]} {one}" for one in ("same", "differ", "refused"))
    )
    if arguments.write:
        arguments.write.write_text("".join(rows), "utf-8")
    return int(counts["differ"] > 0 or counts["refused"] * 1000 > len(encodings))


if __name__ == "__main__":
    sys.exit(main())
