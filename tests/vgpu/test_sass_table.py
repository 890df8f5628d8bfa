"""The table of sm_80's instructions: stored encodings against NVIDIA's disassembly, and refused encodings.

benchmarks/decode.py writes kernels/encodings.tsv: bits, offset in the function, text.
benchmarks/register_use.py writes kernels/registers.tsv: bits, text, "W < R", the registers that are written and read,
as NVIDIA's disassembler says.
"""

import ctypes
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from containers import KERNELS
from virtual_device import build

ROOT = Path(__file__).resolve().parents[2]
ROWS = [line.split("\t") for line in (KERNELS / "encodings.tsv").read_text("utf-8").splitlines()]
REGISTER_USES = [line.split("\t") for line in (KERNELS / "registers.tsv").read_text("utf-8").splitlines()]
TABLE = (ROOT / "vgpu/src/sm80/instructions.def").read_text("utf-8")


@pytest.fixture(scope="module")
def text_of():
    """Return a function that disassembles the bits of an instruction."""
    library = ctypes.CDLL(build())
    library.vgpu_sass_text.restype = ctypes.c_char_p

    def call(bits, offset=0):
        low, high = bits & (1 << 64) - 1, bits >> 64
        text = library.vgpu_sass_text(ctypes.c_uint64(low), ctypes.c_uint64(high), ctypes.c_uint32(offset))
        return re.sub(r"\s+", " ", text.decode()).strip()

    return call


def test_stored_encodings_are_printed_as_nvidia_prints_them(text_of):
    assert len(ROWS) > 400
    wrong = [
        (text, printed) for bits, offset, text in ROWS if (printed := text_of(int(bits, 16), int(offset, 16))) != text
    ]
    assert wrong == []


def test_most_instructions_of_the_table_are_stored():
    names = set(re.findall(r'^INSTRUCTION\(0x\w+, \w+, "\w*", "([A-Z0-9]+)', TABLE, re.MULTILINE))
    stored = {re.sub(r"^@\S+ ", "", text).split(" ")[0].split(".")[0] for _, _, text in ROWS}
    assert len(names) > 100
    assert len(names & stored) >= 0.75 * len(names), sorted(names - stored)


def test_each_opcode_has_one_row():
    """The bits that select a form of the operands are part of the opcode."""
    names = {}
    for opcode, layout, forms, name in re.findall(
        r'^INSTRUCTION\((0x\w+), (\w+), "(\w*)", "([^"]+)"', TABLE, re.MULTILINE
    ):
        for form in forms or "0":
            full_opcode = int(opcode, 16) | (int(form) << 9 if layout != "Plain" else 0)
            assert full_opcode not in names, f"{name} and {names[full_opcode]}"
            names[full_opcode] = name


def test_an_unknown_opcode_and_an_unknown_bit_are_refused_with_their_bits(text_of):
    assert re.fullmatch(r"\? offset 0x30: an unknown instruction \(0{29}fff\)", text_of(0xFFF, 0x30))
    bits = next(int(bits, 16) for bits, _, text in ROWS if text.startswith("EXIT"))
    assert "EXIT with unknown bits" in text_of(bits | 1 << 60)


def test_a_descriptor_is_printed_where_a_bit_says_so(text_of):
    """Newer compilers, such as Triton, set the bit."""
    rows = [(int(bits, 16), text) for bits, _, text in ROWS if re.search(r"\b(LDG|STG|RED|LD|ST)\.E", text)]
    assert len(rows) > 20
    for bits, text in rows:
        register = (bits >> (32 if re.search(r"\bLDG?\.", text) else 64)) & 63
        described = f"desc[UR{register}][" if register != 63 else "desc[URZ]["
        assert text_of(bits | 1 << 101) == text.replace("[", described, 1)


def test_no_encoding_ends_the_process(text_of):
    """Random bits, and real instructions with changed bits, are disassembled or refused."""
    rng = random.Random(1)
    for _ in range(4000):
        assert text_of(rng.getrandbits(128))
        bits = int(rng.choice(ROWS)[0], 16)
        for _ in range(rng.randint(1, 3)):
            bits ^= 1 << rng.randrange(128)
        assert text_of(bits)


def test_the_stored_texts_are_those_of_the_disassembler(tmp_path):
    """The comparison needs nvdisasm (pip install nvidia-cuda-nvdisasm) and nvcc."""
    import shutil

    nvdisasm, nvcc = shutil.which("nvdisasm"), shutil.which("nvcc")
    if not (nvdisasm and nvcc):
        pytest.skip("nvdisasm and nvcc are not in PATH")
    files = []
    for name in ("elementwise", "warps"):
        files.append(str(tmp_path / f"{name}.cubin"))
        command = [nvcc, "-arch=sm_80", "-cubin", "-o", files[-1], str(KERNELS / f"{name}.cu")]
        subprocess.run(command, check=True, capture_output=True)
    command = [sys.executable, str(ROOT / "benchmarks/decode.py"), "--against", nvdisasm, *files]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout


@pytest.fixture(scope="module")
def registers_of():
    """Return a function that names the registers of the bits of an instruction: whether exactly, written, read."""
    library = ctypes.CDLL(build())
    library.vgpu_sass_registers.restype = ctypes.c_char_p

    def call(bits):
        low, high = bits & (1 << 64) - 1, bits >> 64
        text = library.vgpu_sass_registers(ctypes.c_uint64(low), ctypes.c_uint64(high)).decode()
        assert not text.startswith("?"), text
        writes, reads = (set(part.split()) for part in text.lstrip("= ").split("<"))
        return text.startswith("="), writes, reads

    return call


def test_arithmetic_reads_and_writes_the_registers_that_nvidia_names(registers_of):
    exact = 0
    for bits, text, registers in REGISTER_USES:
        nvidia_writes, nvidia_reads = (set(part.split()) for part in registers.split("<"))
        is_exact, writes, reads = registers_of(int(bits, 16))
        reads |= set(re.findall(r"^@!?(P\d)", text))
        if is_exact:
            exact += 1
            assert (writes, reads) == (nvidia_writes, nvidia_reads), text
        else:  # for an instruction without exact register use, the table may list more reads and fewer writes
            assert writes <= nvidia_writes, text
            assert reads >= nvidia_reads, text
    assert exact > 450
