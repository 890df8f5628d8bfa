"""Operands for tests of instructions: corner cases, their neighbors, and random bits of every size."""

import itertools

import numpy as np

# {type: (bits of the exponent, bits of the fraction)}
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}  # bits of exponent and of fraction
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIZE = {"f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4}


def size(type):
    """Return the bytes of a type."""
    return SIZE.get(type) or int(type[1:]) // 8


def unsigned(type):
    """Return the NumPy type that holds the bits of a type."""
    return UNSIGNED[size(type)]


def signed(value, bits):
    """Return the number that the low bits stand for in two's complement."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def wrap(value, bits):
    """Return the low bits of a number."""
    return value & ((1 << bits) - 1)


def integer_corners(bits):
    """Return numbers near zero, near powers of two, and near the ends of the range."""
    near = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 255, 256]
    half, top = 1 << (bits - 1), 1 << bits
    return sorted(
        {wrap(v, bits) for v in [*near, *(-n for n in near), half - 1, half, half + 1, top - 1, 0x5555 * top // 3]}
    )


def float_corners(type):
    """Return the bits of zeros, subnormals, ones, the largest numbers, infinities and NaNs."""
    exponent, fraction = FORMATS[type]
    one = ((1 << (exponent - 1)) - 1) << fraction
    infinite = ((1 << exponent) - 1) << fraction
    corners = [
        0,
        1,
        2,
        (1 << fraction) - 1,
        1 << fraction,
        (1 << fraction) + 1,
        one - 1,
        one,
        one + 1,
        one + (1 << fraction),
        one - (1 << fraction),
        infinite - 1,
        infinite,
        infinite | 1 << (fraction - 1),
        infinite | 1 << (fraction - 1) | 5,
        infinite | 1,
        one + (fraction << fraction),
        one - (fraction << fraction),
        one - ((fraction + 1) << fraction),
    ]
    return corners + [v | 1 << (exponent + fraction) for v in corners]


def operand_tuples(type, arity, count=4000, seed=0):
    """Return `arity` arrays of bits of this type: pairs of corners first, then random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    is_float = type in FORMATS
    bits = 8 * size(type)
    corners = float_corners(type) if is_float else integer_corners(bits)
    product = list(itertools.product(corners, repeat=min(arity, 2)))
    columns = [[corner[k % len(corner)] for corner in product] for k in range(min(arity, 2))]
    columns += [[int(v) for v in rng.choice(np.array(corners, np.uint64), len(product))] for _ in range(arity - 2)]
    randoms = [rng.integers(0, 1 << 64, count, np.uint64) >> np.uint64(64 - bits) for _ in range(arity)]
    for k, column in enumerate(randoms):
        if is_float:  # half of them near each other, where sums cancel and products round
            exponent, fraction = FORMATS[type]
            bias = (1 << (exponent - 1)) - 1
            spread = rng.integers(bias - 4, bias + 4, count).astype(np.uint64) << np.uint64(fraction)
            near = column & np.uint64((1 << fraction) - 1 | 1 << (bits - 1)) | spread
        else:
            near = column >> rng.integers(0, bits, count).astype(np.uint64)
        randoms[k] = np.where(rng.random(count) < 0.5, near, column)
    return [
        np.concatenate([np.array(c, np.uint64), m]).astype(unsigned(type))
        for c, m in zip(columns, randoms, strict=True)
    ]


def assert_same(results, expected, *operands):
    """Compare results bit by bit; show the first operands with a different result."""
    expected = np.asarray(expected, dtype=results.dtype) if not isinstance(expected, np.ndarray) else expected
    different = np.nonzero(results != expected)[0]
    if len(different):
        index = different[0]
        arguments = ", ".join(hex(int(operand[index])) for operand in operands)
        raise AssertionError(
            f"{len(different)} of {len(results)} differ: "
            f"({arguments}) gave {int(results[index]):#x}, not {int(expected[index]):#x}"
        )
