"""mma: floats give the bits of a published model of tensor cores, integers and doubles exact results.

tensor_cores.json has checksums over the model's results; benchmarks/tensor_cores.py compares each bit.
"""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from matrix_products import SHAPES, by_lines, by_rows, products, random_words, run_products, text
from test_approximations import murmur_finalizer

RECORDED = json.loads((Path(__file__).parent / "tensor_cores.json").read_text("utf-8"))
ARCHITECTURES = {80: "Ampere", 90: "Hopper"}


def record_key(capability, shape):
    return f"{capability} {shape.name}"


def checksum(matrices):
    """Return a checksum of the bits of D and their positions."""
    places = np.arange(matrices.size, dtype=np.uint64) << np.uint64(32)
    return f"{int(np.sum(murmur_finalizer(places | matrices.ravel().astype(np.uint64)))):016x}"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_products_have_the_bits_of_the_model(device, capability, shape):
    assert checksum(products(device, capability, shape)) == RECORDED["sums"][record_key(capability, shape)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_machine_code_gives_the_bits_of_the_model(device, shape, compiled):
    assert checksum(products(device, 80, shape, compiled)) == RECORDED["sums"][record_key(80, shape)]


# Rows of A and D, the depth k, and the bits of an element; `signs`: whether A and B are signed.
INTEGERS = [(8, 16, "8"), (16, 16, "8"), (16, 32, "8"), (8, 32, "4"), (16, 32, "4"), (16, 64, "4")]


@pytest.mark.parametrize("saturated", [False, True])
@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
@pytest.mark.parametrize(("rows", "depth", "bits"), INTEGERS)
def test_integers_in_machine_code(device, rows, depth, bits, signs, saturated, compiled):
    first, second, stored = signs[0] + bits, signs[1] + bits, int(bits)
    of_b = depth * stored // 128
    registers = [of_b * rows // 8, of_b, rows // 4]  # of A, B and C
    a, b, c = (
        random_words(k, 4 * count * 32).astype(np.uint32).reshape(4, count, 32) for k, count in enumerate(registers)
    )
    c[::2] = np.where(c[::2] & 1, 0x7FFFFFFF, 0x80000000)
    instruction = f"m{rows}n8k{depth}.row.col{'.satfinite' * saturated}.s32.{first}.{second}.s32"
    result = by_rows(
        run_products(device, compiled(text(instruction, registers, ["b32"] * 4, "sm_80")), 80, a, b, c), 32
    )
    a_elements, b_elements = signed(by_lines(a, stored, rows // 8), first), signed(by_lines(b, stored, 1), second)
    exact = a_elements @ b_elements.transpose(0, 2, 1) + by_rows(c, 32).view(np.int32)
    assert (exact != exact.astype(np.int32)).any()
    if saturated:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    assert (result.view(np.int32) == exact.astype(np.int32)).all()


@pytest.mark.parametrize("bit", [83, 85], ids=["bytes by numbers of 4 bits", "IMMA.8832 of bytes"])
def test_integer_products_without_instruction_are_refused(device, bit, compiled):
    code = bytearray(compiled(text("m8n8k16.row.col.s32.s8.s8.s32", [1, 1, 2], ["b32"] * 4, "sm_80")))
    # The opcode of IMMA; bit 83 belongs to the element type of A, bit 85 to the shape.
    (offset,) = (offset for offset in range(0, len(code) - 16, 8) if code[offset : offset + 2] == b"\x37\x72")
    arrays = [np.zeros((1, count, 32), np.uint32) for count in (1, 1, 2, 2)]
    variables = {"VGPU_COMPUTE_CAPABILITY": "80"}
    assert device.run_in_child(bytes(code), arrays, variables=variables)[0] == 0
    code[offset + bit // 8] |= 1 << bit % 8
    assert device.run_in_child(bytes(code), arrays, variables=variables)[0] != 0


def signed(bits, type):
    """Return the numbers that elements of s8, u8, s4 or u4 represent."""
    numbers, top = bits.astype(np.int64), 1 << int(type[1]) - 1
    return (numbers ^ top) - top if type[0] == "s" else numbers


def test_doubles_in_machine_code(device, compiled):
    """Products are added in order, each with one rounding."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, 1, 32)) * 2.0 ** rng.integers(-30, 30, (2, 4, 1, 32))
    c = rng.normal(size=(4, 2, 32))
    result = run_products(
        device, compiled(text("m8n8k4.row.col.f64.f64.f64.f64", [1, 1, 2], ["f64"] * 4, "sm_80")), 80, a, b, c
    )
    rows, columns, sums = (
        a.reshape(4, 8, 4),
        b.reshape(4, 8, 4),
        c.reshape(4, 2, 8, 4).transpose(0, 2, 3, 1).reshape(4, 8, 8),
    )
    for k in range(4):
        for warp, row, column in np.ndindex(sums.shape):
            product = Fraction(rows[warp, row, k]) * Fraction(columns[warp, column, k])
            sums[warp, row, column] = float(product + Fraction(sums[warp, row, column]))
    assert (result.reshape(4, 2, 8, 4).transpose(0, 2, 3, 1).reshape(4, 8, 8) == sums).all()


def test_recorded_products_distinguish_the_architectures():
    """Ampere adds 8 products of halves at once in 24 bits, Hopper 16 in 25; sums in half precision may hide that."""
    equal = [
        shape.name
        for shape in SHAPES
        if RECORDED["sums"][record_key(80, shape)] == RECORDED["sums"][record_key(90, shape)]
    ]
    assert equal == ["m16n8k8.f16.f16.f16.f16"]
