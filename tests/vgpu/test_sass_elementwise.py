"""The interpreter of sm_80 machine code: each elementwise function against NumPy, and against its own PTX."""

import re

import numpy as np
import pytest
from containers import KERNELS, Launch, run_image

TYPES = {
    "u32": np.uint32,
    "int": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "float": np.float32,
    "double": np.float64,
}
FUNCTIONS = {
    name: (TYPES[operands], TYPES[result])
    for name, operands, result in re.findall(
        r"^BINARY\((\w+), (\w+), (\w+),", (KERNELS / "elementwise.cu").read_text("utf-8"), re.MULTILINE
    )
}
COUNT = 3000


def operands(dtype, seed):
    """Return numbers of all magnitudes, with special values among them."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "f":
        values = (rng.standard_normal(COUNT) * 10.0 ** rng.integers(-12, 12, COUNT)).astype(dtype)
        special = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 2.5, 1e-40, -1e-40, 3e9, -3e9, 1e19, -1e19, 2**-126]
    else:
        values = rng.integers(0, 2**64, COUNT, dtype=np.uint64) >> rng.integers(0, 64, COUNT, dtype=np.uint64)
        values = values.astype(dtype)
        smallest, largest = np.iinfo(dtype).min, np.iinfo(dtype).max
        special = [0, 1, 2, 3, 31, 32, 33, 63, smallest, largest, smallest + 1 if smallest else 5, largest - 1]
    chosen = rng.random(COUNT) < 0.3
    values[chosen] = np.array(special, dtype)[rng.integers(0, len(special), chosen.sum())]
    return values


def launches():
    """Return a launch of each function."""
    return [
        Launch(name, (COUNT + 127) // 128, 128, [operands(a, 1), operands(a, 2), np.zeros(COUNT, out), COUNT])
        for name, (a, out) in FUNCTIONS.items()
    ]


@pytest.fixture(scope="module")
def results():
    """Return {code: {function: result}} for machine code and PTX."""
    image = (KERNELS / "elementwise.fatbin").read_bytes()
    results_by_code = {}
    for code in ("sass", "ptx"):
        answers, stderr = run_image(image, launches(), code)
        for name, (error, _) in zip(FUNCTIONS, answers, strict=True):
            assert error == 0, f"{name}: {stderr}"
        results_by_code[code] = {name: arrays[2] for name, (_, arrays) in zip(FUNCTIONS, answers, strict=True)}
    return results_by_code


def exact(x, y):
    """Return {function: NumPy computation} for what NumPy has; elementwise.cu has the same expressions."""
    with np.errstate(all="ignore"):
        return {
            "add_u32": lambda: x + y,
            "sub_s32": lambda: x - y,
            "mul_u32": lambda: x * y,
            "div_u32": lambda: np.where(y, x // np.maximum(y, 1), 7),
            "min_s32": lambda: np.minimum(x, y),
            "max_u32": lambda: np.maximum(x, y),
            "shr_s32": lambda: x >> (y & 31),
            "mulhi_s32": lambda: (x.astype(np.int64) * y) >> 32,
            "mulhi_u32": lambda: (x.astype(np.uint64) * y) >> np.uint64(32),
            "logic_u32": lambda: (x & ~y) ^ (y | 0x1234) ^ (x >> 3),
            "compare_s32": lambda: (x < y) + 2 * (x <= y) + 4 * (x.view(np.uint32) < y.view(np.uint32)) + 8 * (x == y),
            "add_u64": lambda: x + y,
            "sub_u64": lambda: x - y,
            "mul_u64": lambda: x * y,
            "div_u64": lambda: np.where(y, x // np.maximum(y, 1), 7),
            "shift_s64": lambda: x >> (y & 63),
            "min_s64": lambda: np.minimum(x, y),
            "compare_s64": lambda: (x < y) + 2 * (x <= y) + 4 * (x.view(np.uint64) < y.view(np.uint64)) + 8 * (x == y),
            "add_f32": lambda: x + y,
            "sub_f32": lambda: x - y,
            "mul_f32": lambda: x * y,
            "div_f32": lambda: x / y,
            "compare_f32": lambda: (x < y) + 2 * (x >= y) + 4 * (x == y) + 8 * (x != y) + 16 * np.isnan(x),
            "select_f32": lambda: np.where(x > y, x, -np.abs(y)),
            "from_u64": lambda: x.astype(np.float32),
            "add_f64": lambda: x + y,
            "mul_f64": lambda: x * y,
            "div_f64": lambda: x / y,
            "sqrt_f64": lambda: np.sqrt(np.abs(x)),
            "compare_f64": lambda: (x < y) + 2 * (x >= y) + 4 * (x == y),
            "round_f64": lambda: np.rint(x),
            "to_f32": lambda: x.astype(np.float32),
            "from_s64": lambda: x.astype(np.float64),
        }


NUMPY_HAS = sorted(exact(np.zeros(1), np.zeros(1)))


def assert_same_bits(values, expected):
    """Assert equal bits; every NaN equals every other NaN."""
    expected = expected.astype(values.dtype)
    numbers = values == values
    assert np.array_equal(numbers, expected == expected)
    equal = values[numbers].view(f"u{values.itemsize}") == expected[numbers].view(f"u{values.itemsize}")
    assert equal.all(), (
        f"{(~equal).sum()} differ: {values[numbers][~equal][:5]}, expected {expected[numbers][~equal][:5]}"
    )


@pytest.mark.parametrize("name", NUMPY_HAS)
def test_machine_code_agrees_with_numpy(results, name):
    x, y = operands(FUNCTIONS[name][0], 1), operands(FUNCTIONS[name][0], 2)
    with np.errstate(all="ignore"):
        expected = exact(x, y)[name]()
    assert_same_bits(results["sass"][name], expected)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_machine_code_agrees_with_its_ptx(results, name):
    assert_same_bits(results["sass"][name], results["ptx"][name])
