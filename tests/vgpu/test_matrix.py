"""mma: products of matrices whose elements are spread over a warp, against NumPy's products."""

import numpy as np
import pytest
from exact import Real
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

# elements per register; A has twice as many registers as B
PER_REGISTER = {"tf32": 1, "f16": 2, "bf16": 2, "s8": 4, "u8": 4}
FLOATS = [("tf32", 4), ("tf32", 8), ("f16", 8), ("f16", 16), ("bf16", 8), ("bf16", 16)]
BYTES = [(a, b, k) for a in ("s8", "u8") for b in ("s8", "u8") for k in (16, 32)]


def words(matrix, type):
    """Return the elements of each line as 32-bit words."""
    if type == "f16":
        return matrix.astype(np.float16).view(np.uint32)
    bits = matrix.astype(np.float32).view(np.uint32)
    if type == "bf16":
        return (bits >> 16).astype(np.uint16).view(np.uint32)
    return bits if type == "tf32" else matrix.astype(np.int64).astype(np.uint8).view(np.uint32)


def fragments(lines, type):
    """Return [register, lane] with eight lines per register: lane 4 * line + t has word 4 * block + t."""
    words_ = words(np.ascontiguousarray(lines), type)  # [line, word]
    halves = words_.reshape(-1, 8, words_.shape[1] // 4, 4)  # [upper or lower lines, line, block, t]
    return halves.transpose(2, 0, 1, 3).reshape(-1, 32)


def accumulators(c, halves):
    """Return C as [register, lane]: a lane holds two neighboring columns, in two registers or, as halves, in one."""
    if halves:
        return c.astype(np.float16).view(np.uint32).reshape(2, 32)
    return c.view(np.uint32).reshape(2, 32, 2).transpose(0, 2, 1).reshape(4, 32)


def matrix_of(registers, halves):
    """Return D from the registers of the warp."""
    if halves:
        return registers.reshape(16, 4).view(np.float16).astype(np.float64)
    return registers.reshape(2, 2, 32).transpose(0, 2, 1).reshape(16, 8)


def multiplied(device, a, b, c, types, word=""):
    """Return D of A, B and C, computed by one warp.

    types: those of D, A and B, and the depth k; word: one more modifier of the instruction.
    """
    into, first, second, depth = types
    operands = [fragments(a, first), fragments(b.T, second), accumulators(c, into == "f16")]
    register = "f32" if into == "f32" else "b32"
    body, offset, names = "", 0, []
    for name, rows, kind in zip("abc", operands, ["b32", "b32", register], strict=True):
        body += f".reg .{kind} %{name}<{len(rows)}>;\n"
        names.append("{" + ", ".join(f"%{name}{k}" for k in range(len(rows))) + "}")
        for k in range(len(rows)):
            body += f"ld.global.b32 %{name}{k}, [%l1+{128 * offset}];\n"
            offset += 1
    count = len(operands[2])
    text = f"""ld.param.u64 %l1, [p0]; mul.wide.u32 %l2, %t, 4; add.u64 %l1, %l1, %l2; ld.param.u64 %l3, [p1];
    add.u64 %l3, %l3, %l2; .reg .{register} %d<{count}>;
    {body} mma.sync.aligned.m16n8k{depth}.row.col{word}.{into}.{first}.{second}.{into}
    {{{", ".join(f"%d{k}" for k in range(count))}}}, {", ".join(names)};
    """ + "".join(f"st.global.b32 [%l3+{128 * k}], %d{k};" for k in range(count))
    result, (_, result_) = device.run(
        kernel(text, ["p0", "p1"]), [np.concatenate(operands), np.zeros((count, 32), np.uint32)]
    )
    assert result == 0
    return matrix_of(result_, into == "f16")


@pytest.mark.parametrize(("type", "depth"), FLOATS)
def test_small_integers_are_exact(device, type, depth):
    """All products and sums are integers that each type represents, so every order gives the same."""
    rng = np.random.default_rng(depth)
    a, b = rng.integers(-8, 9, (16, depth)).astype(float), rng.integers(-8, 9, (depth, 8)).astype(float)
    c = rng.integers(-64, 65, (16, 8)).astype(float)
    result_ = multiplied(device, a, b, c.astype(np.float32), ("f32", type, type, depth))
    assert (result_.view(np.float32) == a @ b + c).all()
    if type == "f16":
        assert (multiplied(device, a, b, c, ("f16", type, type, depth)) == a @ b + c).all()


@pytest.mark.parametrize(("first", "second", "depth"), BYTES)
def test_products_of_bytes(device, first, second, depth):
    rng = np.random.default_rng(depth)
    low = {"s8": -128, "u8": 0}
    a = rng.integers(low[first], low[first] + 256, (16, depth))
    b = rng.integers(low[second], low[second] + 256, (depth, 8))
    c = rng.integers(-(1 << 31), 1 << 31, (16, 8))
    c[::2] = np.where(rng.random((8, 8)) < 0.5, (1 << 31) - 1, -(1 << 31))
    exact = a @ b + c
    result_ = multiplied(device, a, b, c.astype(np.int32), ("s32", first, second, depth))
    assert (result_.view(np.int32) == exact.astype(np.int32)).all()
    words_ = multiplied(device, a, b, c.astype(np.int32), ("s32", first, second, depth), ".satfinite")
    assert (words_.view(np.int32) == np.clip(exact, -(1 << 31), (1 << 31) - 1)).all()
    assert (exact != exact.astype(np.int32)).any()


def test_low_bits_beyond_tf32_are_ignored(device):
    ones, c = np.ones((16, 8)), np.zeros((16, 8), np.float32)
    a = (np.full((16, 8), 1.5, np.float32).view(np.uint32) | 0x1FFF).view(np.float32)
    result_ = multiplied(device, a, ones[:8], c, ("f32", "tf32", "tf32", 8))
    assert (result_.view(np.float32) == 12).all()


def test_a_sum_is_rounded_once(device):
    """Four small addends together are a unit in the last place of half precision, but each alone is rounded off."""
    a, b, c = np.zeros((16, 16)), np.ones((16, 8)), np.ones((16, 8))
    a[:, :4] = 2.0**-12 + 2.0**-14
    result_ = multiplied(device, a, b, c, ("f16", "f16", "f16", 16))
    assert (result_ == 1 + 2.0**-10).all()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_nans_and_infinities_propagate(device, wrong):
    a, b, c = np.ones((16, 8)), np.ones((8, 8)), np.zeros((16, 8), np.float32)
    a[3, 5] = wrong
    a[4, 1], a[4, 6] = float("inf"), float("-inf")
    result_ = multiplied(device, a, b, c, ("f32", "f16", "f16", 8))
    assert (result_[4] == Real("f32").nan).all()
    assert (result_[3] == (Real("f32").nan if wrong != wrong else Real("f32").infinite)).all()
    assert (result_[[0, 1, 2, 5]].view(np.float32) == 8).all()


def test_diverged_lanes_reconverge_before_mma(device):
    """Lanes that diverged before the instruction reconverge there."""
    text = """setp.lt.u32 %p0, %t, 7; mov.b32 %r0, 0x3c003c00; @%p0 bra early; mov.b32 %r1, 0x3c003c00; bra both;
    early: mov.b32 %r1, 0x40004000; both: mov.b32 %r2, 0; mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r3, %r4},
    {%r0, %r0}, {%r1}, {%r2, %r2}; ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %t, 4; add.u64 %l0, %l0, %l1;
    st.global.b32 [%l0], %r3;"""
    result, (result_,) = device.run(kernel(text, ["p0"]), [np.zeros(32, np.uint32)])
    columns = (
        result_[:4].view(np.float16).tolist()
    )  # lanes 0 to 3 hold column 0 of B, lanes 4 to 7 column 1; lane 7 took the other branch
    assert result == 0
    assert columns == [16, 14, 8, 8, 8, 8, 8, 8]


@pytest.mark.parametrize(
    "statement",
    [
        "mma.sync.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, {%r0, %r1};",
        "mma.sync.aligned.m16n8k8.row.row.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, {%r0, %r1};",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f32 {%r0, %r1}, {%r0, %r1}, {%r2}, {%r0, %r1, %r2, %r3};",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, %r2, {%r0, %r1};",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, {%r0, %r1};",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, {0, 0};",
    ],
)
def test_forms_that_ptxas_refuses_are_refused(device, statement):
    device.assert_refused(kernel(statement, ["p0"]))
