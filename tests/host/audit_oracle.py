"""The reference for atomics: ptxas and nvdisasm of CUDA 12.4, which NVIDIA ships in the wheel of Triton 3.1.0."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from tfdet.base.paths import cache_dir

WHEEL = "triton==3.1.0"
TAG = ["--only-binary=:all:", "--no-deps", "--implementation=cp", "--python-version=3.11",
       "--platform=manylinux_2_17_x86_64"]  # fmt: skip
TOOLS = {
    "nvdisasm": "af0a3b5be57130ecf050a310767d354a4c730b30a3bf3b88c100dc3c9bcbebea",
    "ptxas": "94dda54a1673940d56d3072c64ef7aacb125a1e64394586e10f77a7a5ff0ff87",
    "cuobjdump": "14b28512b4cb7bf6205a66ae923f81f25903ad6ea297805b5965f64b45ff6f5b",
}
"""SHA-256 of what is run."""


def tool(name: str) -> Path:
    """Return the path of a tool; the wheel (200 MB) is downloaded once, and only its tools are kept."""
    folder = cache_dir() / "oracle"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        if not (folder / name).exists():
            _download_tools(folder)
    return folder / name


def _download_tools(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", *TAG, "--dest", scratch, WHEEL]
        subprocess.run(pip, check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            for name, digest in TOOLS.items():
                content = files.read(f"triton/backends/nvidia/bin/{name}")
                assert hashlib.sha256(content).hexdigest() == digest, name
                part = Path(scratch) / name
                part.write_bytes(content)
                part.chmod(0o755)
                shutil.move(part, folder / name)


def assemble(text: str, arch: int, target: Path) -> bytes:
    """Assemble PTX with ptxas into the file `target`; return the bytes of the cubin."""
    source = target.with_suffix(".ptx")
    source.write_text(text)
    subprocess.run([tool("ptxas"), "-c", "-arch", f"sm_{arch}", source, "-o", target], check=True)
    return target.read_bytes()


_SECTION = re.compile(r"^\t?(?:\.section\t|//-+ )\.text\.([^\s,\"]+)")
_LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z][^;\s]*)")
ATOMIC = re.compile(r"(ATOM|ATOMG|ATOMS|RED|REDG|REDAS|UBLKRED|UTMAREDG)(\.|$)")


def disassemble(cubin: Path) -> Iterator[tuple[str, int, str]]:
    """Return (function, offset, instruction with its modifiers) of every instruction."""
    command = [tool("nvdisasm"), "-c", "-ndf", cubin]
    function = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if section := _SECTION.match(line):
                function = section[1]
            elif match := _LINE.match(line):
                yield function, int(match[1], 16), match[2]
    assert process.returncode == 0, cubin


def kind_of_atomic(instruction: str) -> str:
    """Return the kind of an atomic from nvdisasm's text; written independently of the scanner's tables."""
    name, *modifiers = instruction.split(".")
    shared = "_shared" if name in ("ATOMS", "REDAS") or (name, modifiers[0]) == ("UBLKRED", "S") else ""
    floating = next((m[1].lower() for part in modifiers if (m := re.match(r"(B?F(?:16|32|64))", part))), "")
    for words, base in (
        (("CAS", "CAST"), "cas"),
        (("POPC", "ARRIVE", "INC", "DEC"), "incdec"),
        (("ADD", "SAFEADD"), f"float_add_{floating}" if floating else "int_add"),
        (("MIN", "MAX"), "float_minmax" if floating else "int_minmax"),
        (("AND", "OR", "XOR"), "bitop"),
        (("EXCH",), "exch"),
    ):
        if set(words) & set(modifiers):
            return base + shared
    raise AssertionError(f"an atomic of no kind: {instruction}")


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))
