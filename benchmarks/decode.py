"""Compare the decoder of machine code with NVIDIA's disassembler, on each distinct encoding of sm_80 cubins.

Usage: python benchmarks/decode.py --against nvdisasm FILE... [--write TABLE]
FILE: a cubin, or a library whose containers are compressed with zstd or not at all.  `--against` names the disassembler
(pip install nvidia-cuda-nvdisasm); `--write` stores a few encodings of each instruction, for
tests/vgpu/kernels/encodings.tsv: use only cubins of your own kernels.  Promise: none differs, at most one in a thousand
is refused.
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
from tfdet.audit.cubin import read_cubin  # noqa: E402
from tfdet.audit.elf import ElfError  # noqa: E402

BYTES = 16  # of an instruction
# Of the upper half; the higher bits are stalls and scoreboards, which the text does not contain.
LOW_BITS = (1 << 41) - 1
VALID_HIGH_BITS = 0x000FE2 << 40  # valid higher bits: NVIDIA's disassembler refuses zeros
BATCH_SIZE = 50_000
MAX_PER_SHAPE = 2  # encodings of each instruction, modifiers and kinds of operands that --write keeps


def read_images(path: Path) -> Iterator[bytes]:
    """Yield the file if it is a cubin, or the sm_80 cubins in it."""
    data = memoryview(path.read_bytes())
    with contextlib.suppress(ElfError):
        read_cubin(data)
        yield bytes(data)
        return
    for element in fatbin.iter_elements(data, 0, len(data), lambda _: None):
        if element.arch == 80 and element.kind == "elf":
            yield fatbin.read_payload(data, element)


def distinct_encodings(paths: list[Path]) -> list[tuple[int, int]]:
    encodings = set()
    for path in paths:
        for cubin in map(read_cubin, map(memoryview, read_images(path))):
            for kernel in range(len(cubin.rows)):
                encodings.update((low, high & LOW_BITS) for low, high in struct.iter_unpack("<QQ", cubin.code(kernel)))
    return sorted(encodings)


def normalize_spaces(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def nvidia_texts(command: str, encodings: list[tuple[int, int]]) -> list[str]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(struct.pack("<QQ", low, high | VALID_HIGH_BITS) for low, high in encodings))
        file.flush()
        process = subprocess.run([command, "-b", "SM80", file.name], capture_output=True, text=True, check=False)
    lines = {
        int(offset, 16): normalize_spaces(text)
        for offset, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", process.stdout)
    }
    return [lines.get(BYTES * number, "") for number in range(len(encodings))]


def decoder_texts(library: ctypes.CDLL, encodings: list[tuple[int, int]]) -> list[str]:
    texts = []
    for number, (low, high) in enumerate(encodings):
        text = library.vgpu_sass_text(
            ctypes.c_uint64(low), ctypes.c_uint64(high | VALID_HIGH_BITS), ctypes.c_uint32(BYTES * number)
        )
        texts.append(text.decode())
    return texts


def instruction_shape(text: str) -> str:
    return re.sub(r"\b(U?[RPB])\d+|-?0x[0-9a-f]+|\b\d+(\.\d+)?(e[+-]?\d+)?", r"\1#", text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the decoder of sm_80 with NVIDIA's.")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--against", required=True, help="the disassembler's command")
    parser.add_argument("--write", type=Path, help="where a few of each instruction are kept")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(build.build(build.cache()) / "libvgpu.so"))
    library.vgpu_sass_text.restype = ctypes.c_char_p
    encodings = distinct_encodings(arguments.files)
    counts: Counter[str] = Counter()
    shape_counts: Counter[str] = Counter()
    rows = []
    for start in range(0, len(encodings), BATCH_SIZE):
        batch = encodings[start : start + BATCH_SIZE]
        pairs = zip(batch, decoder_texts(library, batch), nvidia_texts(arguments.against, batch), strict=True)
        for number, ((low, high), own_text, nvidia_text) in enumerate(pairs):
            outcome = (
                "refused"
                if own_text.startswith("?")
                else "same"
                if normalize_spaces(own_text) == nvidia_text
                else "differ"
            )
            counts[outcome] += 1
            if outcome != "same" and counts[outcome] <= 20:
                print(f"{outcome}: {own_text} | {nvidia_text}")
            shape_counts[instruction_shape(nvidia_text)] += 1
            if shape_counts[instruction_shape(nvidia_text)] <= MAX_PER_SHAPE:
                rows.append(f"{high:016x}{low:016x}\t{BYTES * number:x}\t{nvidia_text}\n")
    print(
        f"{len(encodings)} distinct encodings: "
        + ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("same", "differ", "refused"))
    )
    if arguments.write:
        arguments.write.write_text("".join(rows), "utf-8")
    return int(counts["differ"] > 0 or counts["refused"] * 1000 > len(encodings))


if __name__ == "__main__":
    sys.exit(main())
