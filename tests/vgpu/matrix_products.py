"""Random operands of mma as the registers of many warps, and the products that the device computes from them.

Each block of a kernel is one warp with its own A, B, C and D, which lie in memory as [warp, register, lane].
"""

from typing import NamedTuple

import numpy as np
from virtual_device import kernel

WARPS = 40
# Distributions of random operands, by which numbers() chooses exponents and fractions.
KINDS = ("near", "wide", "small", "cancelling", "zeros", "tiny", "special")
BITS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23)}  # of exponent and fraction
STORED = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32}  # bits


class Shape(NamedTuple):
    """The shape and types of mma.m16n8k{depth}.{sum}.{element}.{element}.{sum}."""

    depth: int
    element: str
    sum: str

    @property
    def name(self):
        """Return the instruction's modifiers."""
        return f"m16n8k{self.depth}.{self.sum}.{self.element}.{self.element}.{self.sum}"

    @property
    def registers(self):
        """The numbers of registers of A, B, and C or D."""
        of_b = self.depth * STORED[self.element] // 128
        return 2 * of_b, of_b, STORED[self.sum] // 8


SHAPES = [
    *(Shape(depth, "f16", sum) for depth in (8, 16) for sum in ("f32", "f16")),
    *(Shape(depth, "bf16", "f32") for depth in (8, 16)),
    *(Shape(depth, "tf32", "f32") for depth in (4, 8)),
]


def random_words(seed, count):
    """Return random 64-bit numbers from SplitMix64, which are the same on every machine."""
    x = (np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def numbers(seed, count, kind, type):
    """Return the bits of random floats; `kind` selects the distribution of exponents and fractions."""
    exponent_bits, fraction_bits = BITS[type]
    special, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    random_bits = random_words(seed, count).astype(object)
    sign, fraction, choice = random_bits & 1, (random_bits >> 8) & ((1 << fraction_bits) - 1), random_bits >> 40
    exponent = bias - 2 + choice % 5
    if kind == "wide":
        exponent = choice % special
    elif kind == "small":
        exponent = choice % max(bias // 2, 3)
    elif kind == "cancelling":
        exponent, fraction = bias + choice % 2, fraction >> (fraction_bits - 3) << (fraction_bits - 3)
    elif kind == "zeros":
        exponent, fraction = exponent * (choice >> 8 & 1), fraction * (choice >> 8 & 1)
    elif kind == "tiny":  # products and sums where zeros, and what is cut off, count
        # A biased exponent; products of two bf16 or tf32 numbers lie near the least f32 number.
        lowest = 1 if type == "f16" else 0 if type == "f32" else bias - 78
        exponent = (lowest + choice % (5 if type in ("f16", "f32") else 24)) * (choice >> 8 & 1)
        fraction = fraction * (choice >> 9 & 1)
    elif kind == "special":
        exponent, fraction = np.where(choice % 32 < 1, special, exponent), fraction * (choice >> 8 & 1)
    bits = (sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction).astype(np.uint32)
    return bits << np.uint32(13) if type == "tf32" else bits


def operands(shape):
    """Return A, B and C as words [warp, register, lane]: WARPS warps of each of KINDS, in that order."""
    types = (shape.element, shape.element, shape.sum)
    return [fragments(shape, index, type) for index, type in enumerate(types)]


def fragments(shape, operand, type):
    """Return the words of A (operand 0), B (1) or C (2)."""
    seed, count = 10 * len(KINDS) * SHAPES.index(shape), WARPS * shape.registers[operand] * 32 * 32 // STORED[type]
    bits = [numbers(seed + 10 * k + operand, count, kind, type) for k, kind in enumerate(KINDS)]
    words = np.concatenate(bits).astype(f"<u{STORED[type] // 8}").view(np.uint32)
    return words.reshape(-1, shape.registers[operand], 32)


def text(instruction, registers, types, target):
    """Return the PTX of the kernel.

    registers: their numbers for A, B and C; types: those of A, B, C and D (f64: registers of 64 bits).
    """
    lines, groups = ["mov.u32 %r1, %ctaid.x;"], []
    for k, (name, count, type) in enumerate(zip("xyzd", [*registers, registers[2]], types, strict=True)):
        size = 8 if type == "f64" else 4
        group = [f"%{name}{index}" for index in range(count)]
        lines.append(f".reg .{type} %{name}<{count}>; ld.param.u64 %l0, [p{k}]; mul.lo.u32 %r3, %t, {size};")
        lines.append(f"mad.lo.u32 %r2, %r1, {32 * size * count}, %r3; cvt.u64.u32 %l1, %r2; add.u64 %l0, %l0, %l1;")
        if name != "d":
            lines += [f"ld.global.{type} {operand}, [%l0+{32 * size * index}];" for index, operand in enumerate(group)]
        groups.append("{" + ", ".join(group) + "}")
    lines.append(f"mma.sync.aligned.{instruction} {groups[3]}, {groups[0]}, {groups[1]}, {groups[2]};")
    lines += [f"st.global.{type} [%l0+{32 * size * index}], {operand};" for index, operand in enumerate(group)]
    return kernel("\n".join(lines), ["p0", "p1", "p2", "p3"]).replace("sm_90", target)


def run_products(device, image, capability, a, b, c):
    """Return D, from a child process whose device has the compute capability (80 for 8.0)."""
    variables = {"VGPU_COMPUTE_CAPABILITY": str(capability)}
    result, arrays, stderr = device.run_in_child(image, [a, b, c, np.zeros_like(c)], variables=variables, grid=len(c))
    assert result == 0, stderr
    return arrays[-1]


def products(device, capability, shape, compiled=lambda text: text):
    """Return the bits of D [warp, 16, 8]."""
    sum_type = "f32" if shape.sum == "f32" else "b32"  # of registers: b32 holds two f16
    instruction = f"m16n8k{shape.depth}.row.col{shape.name.removeprefix(f'm16n8k{shape.depth}')}"
    ptx = text(instruction, shape.registers, ["b32", "b32", sum_type, sum_type], f"sm_{capability}")
    return by_rows(run_products(device, compiled(ptx), capability, *operands(shape)), STORED[shape.sum])


def matrices(shape, a, b, c):
    """Return the bits of A [warp, 16, depth], B [warp, depth, 8] and C [warp, 16, 8]."""
    of_a = by_lines(a, STORED[shape.element], 2)
    of_b = by_lines(b, STORED[shape.element], 1)
    return of_a, of_b.transpose(0, 2, 1), by_rows(c, STORED[shape.sum])


def by_lines(words, stored, halves):
    """Return the elements as [warp, line, k]; a line is a row of A or a column of B.

    Lane 4 * line + t holds the t-th word of a line; A has a register for each half of its rows.
    """
    warps, registers, _ = words.shape
    parts = words.reshape(warps, registers // halves, halves, 8, 4)  # [part, half, line, t]
    lines = np.ascontiguousarray(parts.transpose(0, 2, 3, 1, 4).reshape(warps, 8 * halves, -1))
    if stored == 4:  # bits: two integers in a byte
        return np.stack([lines.view(np.uint8) & 15, lines.view(np.uint8) >> 4], -1).reshape(warps, 8 * halves, -1)
    return lines.view(f"<u{stored // 8}")


def by_rows(words, stored):
    """Return the elements as [warp, row, column]; a lane holds two neighboring columns, in two registers or in one."""
    warps = len(words)
    if stored == 16:
        return np.ascontiguousarray(words.reshape(warps, -1, 4)).view("<u2")
    return words.reshape(warps, -1, 2, 8, 4).transpose(0, 1, 3, 4, 2).reshape(warps, -1, 8)
