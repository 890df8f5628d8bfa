"""Random operands of mma, as registers of many warps, and what the device makes of them.

A kernel's block is a warp with its own A, B, C and D, which lie in memory as [warp, register, lane].
"""

from typing import NamedTuple

import numpy as np
from virtual_device import kernel

WARPS = 40
KINDS = ("near", "wide", "small", "cancelling", "zeros", "tiny", "special")
BITS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23)}  # of exponent and fraction
STORED = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32}  # bits


class Shape(NamedTuple):
    """mma.m16n8k{depth}.{sum}.{element}.{element}.{sum}."""

    depth: int
    element: str
    sum: str

    @property
    def name(self):
        return f"m16n8k{self.depth}.{self.sum}.{self.element}.{self.element}.{self.sum}"

    @property
    def registers(self):
        """Of A, B, and C or D."""
        of_b = self.depth * STORED[self.element] // 128
        return 2 * of_b, of_b, STORED[self.sum] // 8


SHAPES = [
    *(Shape(depth, "f16", sum) for depth in (8, 16) for sum in ("f32", "f16")),
    *(Shape(depth, "bf16", "f32") for depth in (8, 16)),
    *(Shape(depth, "tf32", "f32") for depth in (4, 8)),
]


def random_words(seed, count):
    """64 bits each: SplitMix64, which is the same everywhere."""
    x = (np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def numbers(seed, count, kind, type):
    """Bits of floats whose exponents and fractions are as `kind` says."""
    exponent_bits, fraction_bits = BITS[type]
    special, bias = (1 << exponent_bits) - 1, (1 << (exponent_bits - 1)) - 1
    words = random_words(seed, count).astype(object)
    sign, fraction, chosen = words & 1, (words >> 8) & ((1 << fraction_bits) - 1), words >> 40
    exponent = bias - 2 + chosen % 5
    if kind == "wide":
        exponent = chosen % special
    elif kind == "small":
        exponent = chosen % max(bias // 2, 3)
    elif kind == "cancelling":
        exponent, fraction = bias + chosen % 2, fraction >> (fraction_bits - 3) << (fraction_bits - 3)
    elif kind == "zeros":
        exponent, fraction = exponent * (chosen >> 8 & 1), fraction * (chosen >> 8 & 1)
    elif kind == "tiny":  # products and sums where zeros, and what is cut off, count
        lowest = 1 if type == "f16" else 0 if type == "f32" else bias - 78
        exponent = (lowest + chosen % (5 if type in ("f16", "f32") else 24)) * (chosen >> 8 & 1)
        fraction = fraction * (chosen >> 9 & 1)
    elif kind == "special":
        exponent, fraction = np.where(chosen % 32 < 1, special, exponent), fraction * (chosen >> 8 & 1)
    bits = (sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction).astype(np.uint32)
    return bits << np.uint32(13) if type == "tf32" else bits


def operands(shape):
    """Words of A, B and C: [warp, register, lane]; WARPS of each kind, one kind after the other."""
    types = (shape.element, shape.element, shape.sum)
    return [fragments(shape, at, type) for at, type in enumerate(types)]


def fragments(shape, at, type):
    """Those of A (at: 0), B (1) or C (2)."""
    first, count = 10 * len(KINDS) * SHAPES.index(shape), WARPS * shape.registers[at] * 32 * 32 // STORED[type]
    bits = [numbers(first + 10 * k + at, count, kind, type) for k, kind in enumerate(KINDS)]
    words = np.concatenate(bits).astype(f"<u{STORED[type] // 8}").view(np.uint32)
    return words.reshape(-1, shape.registers[at], 32)


def text(instruction, registers, types, target):
    """The kernel.  registers: of A, B and C; types: theirs and, the last, that of D (f64: registers of 64 bits)."""
    lines, groups = ["mov.u32 %r1, %ctaid.x;"], []
    for k, (name, count, type) in enumerate(zip("xyzd", [*registers, registers[2]], types, strict=True)):
        size = 8 if type == "f64" else 4
        group = [f"%{name}{at}" for at in range(count)]
        lines.append(f".reg .{type} %{name}<{count}>; ld.param.u64 %l0, [p{k}]; mul.lo.u32 %r3, %t, {size};")
        lines.append(f"mad.lo.u32 %r2, %r1, {32 * size * count}, %r3; cvt.u64.u32 %l1, %r2; add.u64 %l0, %l0, %l1;")
        if name != "d":
            lines += [f"ld.global.{type} {one}, [%l0+{32 * size * at}];" for at, one in enumerate(group)]
        groups.append("{" + ", ".join(group) + "}")
    lines.append(f"mma.sync.aligned.{instruction} {groups[3]}, {groups[0]}, {groups[1]}, {groups[2]};")
    lines += [f"st.global.{type} [%l0+{32 * size * at}], {one};" for at, one in enumerate(group)]
    return kernel("\n".join(lines), ["p0", "p1", "p2", "p3"]).replace("sm_90", target)


def run(device, image, capability, a, b, c):
    """D, in a child process whose device has this compute capability, which is 80 for 8.0."""
    variables = {"VGPU_COMPUTE_CAPABILITY": str(capability)}
    result, arrays, said = device.run_in_child(image, [a, b, c, np.zeros_like(c)], variables=variables, grid=len(c))
    assert result == 0, said
    return arrays[-1]


def products(device, capability, shape, compiled=lambda text: text):
    """The bits of D [warp, 16, 8]."""
    number = "f32" if shape.sum == "f32" else "b32"
    instruction = f"m16n8k{shape.depth}.row.col{shape.name.removeprefix(f'm16n8k{shape.depth}')}"
    made = text(instruction, shape.registers, ["b32", "b32", number, number], f"sm_{capability}")
    return by_rows(run(device, compiled(made), capability, *operands(shape)), STORED[shape.sum])


def matrices(shape, a, b, c):
    """The bits of A [warp, 16, depth], B [warp, depth, 8] and C [warp, 16, 8]."""
    of_a = by_lines(a, STORED[shape.element], 2)
    of_b = by_lines(b, STORED[shape.element], 1)
    return of_a, of_b.transpose(0, 2, 1), by_rows(c, STORED[shape.sum])


def by_lines(words, stored, halves):
    """[warp, line, k]: lane 4 * line + t has the t-th word of a line; A has a register for each half of its rows."""
    warps, registers, _ = words.shape
    parts = words.reshape(warps, registers // halves, halves, 8, 4)  # [part, half, line, t]
    lines = np.ascontiguousarray(parts.transpose(0, 2, 3, 1, 4).reshape(warps, 8 * halves, -1))
    if stored == 4:
        return np.stack([lines.view(np.uint8) & 15, lines.view(np.uint8) >> 4], -1).reshape(warps, 8 * halves, -1)
    return lines.view(f"<u{stored // 8}")


def by_rows(words, stored):
    """[warp, row, column]: a lane has two neighbouring columns, in two registers or in one."""
    warps = len(words)
    if stored == 16:
        return np.ascontiguousarray(words.reshape(warps, -1, 4)).view("<u2")
    return words.reshape(warps, -1, 2, 8, 4).transpose(0, 1, 3, 4, 2).reshape(warps, -1, 8)
