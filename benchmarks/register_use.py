"""Compare the registers that each instruction reads and writes with the life ranges of NVIDIA's disassembler.

Usage: python benchmarks/register_use.py --against nvdisasm FILE... [--limit N] [--write TABLE]
FILE: a cubin, or a library of sm_80 cubins, of which the first N are taken.  `--against` names the disassembler
(pip install nvidia-cuda-nvdisasm); `--write` stores a few instructions of each form, for
tests/vgpu/kernels/registers.tsv: use only cubins of your own kernels.  Promise: none differs.  Calls are left out:
nvdisasm adds what their callees may read and write.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import decode

LINE = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/")
SECOND_LINE = re.compile(r"\s+/\* 0x([0-9a-f]{16}) \*/\s+// (\|.*)")
FILES = {"GPR": "R", "PRED": "P"}  # columns of registers, to the letter of their names
READ, WRITTEN = "vx", "^x"


def register_columns(header: str, numbers: str) -> dict[int, str]:
    """Return the column of each register: `header` names the files, and `numbers` the registers below."""
    columns = {}
    for file, part in zip(re.findall(r"\|([^|]*)", header), re.finditer(r"\|[^|]*", numbers), strict=True):
        letter = FILES.get(file.strip())
        for number in re.finditer(r"\b\d+\b", part.group()) if letter else ():
            columns[part.start() + number.end() - 1] = letter + number.group()
    return columns


def nvidia_uses(command: str, cubin: bytes) -> Iterator[tuple[int, int, str, set[str], set[str]]]:
    """Yield each instruction's two words, its text, and the registers that it reads and writes."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        process = subprocess.run(
            [command, "-plr", "-lrm", "wide", "-hex", file.name], capture_output=True, text=True, check=False
        )
    columns: dict[int, str] = {}
    header = ""
    for line, next_line in itertools.pairwise(process.stdout.splitlines()):
        comment = line.split("// ", 1)[-1]
        if "GPR" in comment:
            header = comment
        elif re.match(r"\|\s+#\s+\d", comment):
            columns = register_columns(header, comment)
        first, second = LINE.match(line), SECOND_LINE.match(next_line)
        if first and second and columns:
            marks = second[2].ljust(max(columns) + 1)
            reads = {name for column, name in columns.items() if marks[column] in READ}
            writes = {name for column, name in columns.items() if marks[column] in WRITTEN}
            yield int(first[2], 16), int(second[1], 16), first[1], reads, writes


def guard_of(text: str) -> set[str]:
    guard = re.match(r"@!?(P\d)", text)
    return {guard[1]} if guard else set()


def is_same(library: ctypes.CDLL, low: int, high: int, text: str, reads: set[str], writes: set[str]) -> bool:
    """Return whether the decoder names the same; of what is not arithmetic it may read more and write less.

    Its text is "= R2 P0 < R4 R5", written before read, without "=" for what is not arithmetic, or "? REASON".
    """
    own = library.vgpu_sass_registers(ctypes.c_uint64(low), ctypes.c_uint64(high)).decode()
    if own.startswith("?"):
        return False
    own_writes, own_reads = (set(part.split()) for part in own.lstrip("= ").split("<"))
    own_reads |= guard_of(text)
    if own.startswith("="):
        return own_reads == reads and own_writes == writes
    return own_reads >= reads and own_writes <= writes


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the decoder's use of registers with NVIDIA's.")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--against", required=True, help="the disassembler's command")
    parser.add_argument("--limit", type=int, help="the number of cubins of a library that are compared")
    parser.add_argument("--write", type=Path, help="where a few instructions of each form are kept")
    arguments = parser.parse_args()
    library = ctypes.CDLL(str(decode.build.build(decode.build.cache()) / "libvgpu.so"))
    library.vgpu_sass_registers.restype = ctypes.c_char_p
    counts: Counter[str] = Counter()
    shape_counts: Counter[str] = Counter()
    rows = []
    for path in arguments.files:
        for cubin in itertools.islice(decode.read_images(path), arguments.limit):
            for low, high, text, reads, writes in nvidia_uses(arguments.against, cubin):
                is_call = " CALL." in f" {text}"
                same = is_call or is_same(library, low, high, text, reads, writes)
                counts["calls" if is_call else "same" if same else "differ"] += 1
                if not same and counts["differ"] <= 20:
                    print(f"{text}: reads {sorted(reads)}, writes {sorted(writes)}")
                shape = decode.instruction_shape(text)
                shape_counts[shape] += 1
                if not is_call and shape_counts[shape] <= decode.MAX_PER_SHAPE:
                    rows.append(
                        f"{high:016x}{low:016x}\t{text}\t{' '.join(sorted(writes))} < {' '.join(sorted(reads))}\n"
                    )
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    if arguments.write:
        arguments.write.write_text("".join(rows), "utf-8")
    return int(counts["differ"] > 0)


if __name__ == "__main__":
    sys.exit(main())
