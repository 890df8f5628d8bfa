"""atom and red: every operation, type and state space, with one thread per address and with many."""

import numpy as np
import pytest
from exact import Real, canonical, result
from operands import assert_same, operand_tuples, signed, size, unsigned, wrap
from virtual_device import kernel, register, sized_type  # in a kernel %i is the thread in the grid, %t in the block

LANES = 32


def compare_and_swap(old, b, c):
    return c if old == b else old


INTEGER = {
    "add": lambda old, b, c: old + b,
    "min": lambda old, b, c: min(old, b),
    "max": lambda old, b, c: max(old, b),
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "exch": lambda old, b, c: b,
    "cas": compare_and_swap,
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
}
CASES = [
    *((op, f"{kind}{bits}") for op in ("min", "max") for kind in "us" for bits in (32, 64)),
    *((op, f"b{bits}") for op in ("and", "or", "xor", "exch", "cas") for bits in (32, 64)),
    ("cas", "b16"),
    ("add", "u32"),
    ("add", "s32"),
    ("add", "u64"),
    ("inc", "u32"),
    ("dec", "u32"),
]
FLOATS = ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"]
SPACES = ["global", "shared", "generic", "generic shared"]


def atomic_kernel(op, type, space, reads):
    """Return a kernel in which each thread applies the operation to its word of p0, with operands from p1 and p2.

    The old value goes to p3.
    """
    width, desired = size(type), ", %c" if op == "cas" else ""
    suffix = "noftz." if type in ("f16", "bf16", "f16x2", "bf16x2") else ""
    space_modifier = {"global": "global.", "shared": "shared."}.get(space, "")
    address = {"global": "[%at]", "shared": "[%near]", "generic": "[%at]", "generic shared": "[%other]"}[space]
    name, old = ("atom", "%d, ") if reads else ("red", "")
    apply = f"{name}.{space_modifier}{op}.{suffix}{type} {old}{address}, %b{desired};"
    bits = sized_type(unsigned(type))
    stage = f"st.shared.{bits} [%near], %a;" if "shared" in space else ""
    store_back = f"ld.shared.{bits} %a, [%near]; st.global.{bits} [%at], %a;" if "shared" in space else ""
    loads = "".join(
        f"ld.param.u64 %l1, [p{k}]; add.u64 %l1, %l1, %o; ld.global.{bits} %{'abc'[k]}, [%l1];" for k in range(3)
    )
    return kernel(
        f""".reg .{register(unsigned(type))} %a, %b, %c, %d; .reg .b64 %o, %at, %other; .reg .b32 %near;
    .shared .align 16 .b8 area[{LANES * 8}];
    mul.wide.u32 %o, %i, {width}; {loads} ld.param.u64 %at, [p0]; add.u64 %at, %at, %o;
    mov.u32 %near, area; mul.lo.u32 %r1, %t, {width}; add.u32 %near, %near, %r1;
    cvt.u64.u32 %other, %near; cvta.shared.u64 %other, %other; mov.b{max(16, 8 * width)} %d, %a;
    {stage} {apply} {store_back} ld.param.u64 %l1, [p3]; add.u64 %l1, %l1, %o; st.global.{bits} [%l1], %d;""",
        ["p0", "p1", "p2", "p3"],
    )


def run_atomics(device, op, type, space, columns, reads=True):
    """Run the operation; assert the old values, and return (new values, operands)."""
    count = len(columns[0]) // LANES * LANES
    columns = [np.ascontiguousarray(column[:count]) for column in columns]
    code, (new_values, _, _, old) = device.run(
        atomic_kernel(op, type, space, reads), [*columns, np.zeros_like(columns[0])], count // LANES, LANES
    )
    assert code == 0
    assert_same(old, columns[0], *columns)
    return new_values, columns


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("op", "type"), CASES)
def test_integer_atomics(device, op, type, space):
    columns = operand_tuples(type, 3, 2000)
    if op == "cas":
        columns[1] = np.where(np.arange(len(columns[0])) % 2, columns[0], columns[1])
    bits = 8 * size(type)
    for reads in (True, False) if op not in ("cas", "exch") else (True,):
        new_values, operands = run_atomics(device, op, type, space, columns, reads)
        rows = zip(*(column.tolist() for column in operands), strict=True)
        if type[0] == "s":
            rows = [[signed(value, bits) for value in row] for row in rows]
        assert_same(new_values, np.array([wrap(INTEGER[op](*row), bits) for row in rows], new_values.dtype), *operands)


def expected_sum(type, a, b, flushes):
    """Return the bits of the sum, for pairs of each half."""
    if type.endswith("x2"):
        return (
            expected_sum(type[:-2], a & 0xFFFF, b & 0xFFFF, False)
            | expected_sum(type[:-2], a >> 16, b >> 16, False) << 16
        )
    return result(type, "add", "rn", [a, b], ftz=flushes and type == "f32")


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("type", FLOATS)
def test_float_additions(device, type, space):
    """Single precision is flushed in global memory, but not in shared memory, as PTX specifies."""
    columns = (
        operand_tuples(type, 3, 2000)
        if not type.endswith("x2")
        else [column[: len(column) // 2 * 2].view(np.uint32) for column in operand_tuples(type[:-2], 3, 4000)]
    )
    for reads in (True, False):
        new_values, operands = run_atomics(device, "add", type, space, columns, reads)
        values = canonical("f64", new_values.tolist()) if type == "f64" else new_values.tolist()
        rows = zip(operands[0].tolist(), operands[1].tolist(), strict=True)
        assert_same(
            np.array(values, new_values.dtype),
            [expected_sum(type, a, b, "shared" not in space) for a, b in rows],
            *operands,
        )


# %l0: the address of one of four counters in p0; %l1: that of the thread's word in p1.
COUNTER_KERNEL = """ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mul.wide.u32 %l2, %i, 4; add.u64 %l1, %l1, %l2;
and.b32 %r1, %i, 3; mul.wide.u32 %l3, %r1, 4; add.u64 %l0, %l0, %l3;"""
# Orders in which the virtual GPU runs threads, with seeds; adversary preempts a warp before each visible operation.
SCHEDULES = ["serial", "reverse", "random:1", "adversary:1", "atomics:1"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_concurrent_increments_return_distinct_values(device, schedule):
    """Each thread gets another ticket: none is lost, and none is drawn twice."""
    text = kernel(COUNTER_KERNEL + "atom.global.add.u32 %r2, [%l0], 1; st.global.u32 [%l1], %r2;", ["p0", "p1"])
    code, (counts, drawn), _ = device.run_in_child(
        text, [np.zeros(4, np.uint32), np.zeros(2048, np.uint32)], schedule, grid=16, block=128
    )
    assert (code, counts.tolist()) == (0, [512] * 4)
    for k in range(4):
        assert sorted(drawn[k::4].tolist()) == list(range(512))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_concurrent_exchanges_lose_no_value(device, schedule):
    """The values that exch stores and the first value are those that exch returns and the last value."""
    text = kernel(
        COUNTER_KERNEL + "add.u32 %r3, %i, 1; atom.global.exch.b32 %r2, [%l0], %r3; st.global.u32 [%l1], %r2;",
        ["p0", "p1"],
    )
    code, (last_values, drawn), _ = device.run_in_child(
        text, [np.zeros(4, np.uint32), np.zeros(512, np.uint32)], schedule, grid=4, block=128
    )
    assert code == 0
    assert sorted([*last_values.tolist(), *drawn.tolist()]) == sorted([0] * 4 + list(range(1, 513)))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_compare_and_swap_loop_sums_correctly(device, schedule):
    """This loop is how frameworks build an atomic that the hardware lacks; a product of odd numbers is exact."""
    body = (
        COUNTER_KERNEL
        + """shl.b32 %r4, %i, 1; or.b32 %r4, %r4, 1; ld.global.u32 %r5, [%l0];
    again: mul.lo.u32 %r6, %r5, %r4; mov.u32 %r7, %r5; atom.global.cas.b32 %r5, [%l0], %r5, %r6;
    setp.ne.u32 %p0, %r5, %r7; @%p0 bra again;"""
    )
    code, (values, _), _ = device.run_in_child(
        kernel(body, ["p0", "p1"]), [np.ones(4, np.uint32), np.zeros(256, np.uint32)], schedule, grid=4, block=64
    )
    expected = [1] * 4
    for k in range(256):
        expected[k & 3] = wrap(expected[k & 3] * (2 * k + 1), 32)
    assert (code, values.tolist()) == (0, expected)


def test_the_order_of_sums_is_the_schedule_s(device):
    """Sums of floats depend on the seed, and repeat with the same seed."""
    text = kernel(COUNTER_KERNEL + "ld.global.f32 %r2, [%l1]; red.global.add.f32 [%l0], %r2;", ["p0", "p1"])
    values = np.random.default_rng(0).standard_normal(4096).astype(np.float32).view(np.uint32)
    results = {}
    for schedule in [*SCHEDULES, "random:2", "random:3"]:
        for _ in range(2):
            code, (made, _), _ = device.run_in_child(
                text, [np.zeros(4, np.uint32), values], schedule, grid=32, block=128
            )
            assert code == 0
            assert results.setdefault(schedule, made.tobytes()) == made.tobytes()
    assert len(set(results.values())) >= 5


def test_exchanges_keep_the_payloads_of_nans(device):
    real = Real("f32")
    x = np.array([real.nan ^ 5, real.infinite | 1, real.infinite | 1 << 22 | 3] * 32, np.uint32)
    new_values, operands = run_atomics(device, "exch", "b32", "global", [np.zeros_like(x), x, x])
    assert_same(new_values, operands[1], *operands)


def test_the_log_tells_how_many_there_were(device, monkeypatch):
    monkeypatch.setenv("VGPU_LOG", "1")
    body = "ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1; ret;"
    code, (values,), stderr = device.run_in_child(kernel(body, ["p0"]), [np.zeros(1, np.uint32)], grid=3, block=40)
    assert (code, values[0]) == (0, 120)
    assert "120 atomics" in stderr


VECTORS = {
    "v2.f32": ("{%r1, %r2}", "{%r3, %r4}", np.float32),
    "v4.f32": ("{%r1, %r2, %r1, %r2}", "{%r3, %r4, %r5, %r6}", np.float32),
    "v8.f16": ("{%h1, %h2, %h1, %h2, %h1, %h2, %h1, %h2}", "", np.float16),
}


@pytest.mark.parametrize("form", VECTORS)
def test_vector_atomics_add_each_element(device, form):
    operands, old, dtype = VECTORS[form]
    count, bits = int(form[1]), np.array([1.5, 0.25], dtype).view(f"u{np.dtype(dtype).itemsize}")
    kind = {4: "b32 %r", 2: "b16 %h"}[np.dtype(dtype).itemsize]
    text = "".join(f"mov.{kind}{k}, {bits[k - 1]};" for k in (1, 2)) + "ld.param.u64 %l0, [p0];"
    text += f"red.global.{form}.add{'.noftz' * (dtype is np.float16)} [%l0], {operands};"
    if old:
        text += f"atom.global.add.{form} {old}, [%l0], {operands};"
    code, (values,) = device.run(kernel(text, ["p0"]), [np.zeros(count, dtype)], 2, 64)
    times = 128 * (2 if old else 1)
    assert (code, values.tolist()) == (0, [1.5 * times, 0.25 * times] * (count // 2))


def test_vectors_of_another_length_are_refused(device):
    for body in ("red.global.v2.f32.add [%l0], {%r1, %r2, %r3};", "red.global.v4.f32.add [%l0], %r1;"):
        device.assert_refused(kernel(body, ["p0"]))
