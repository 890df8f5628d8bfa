"""mov with packing, ld and st of all types, vectors and state spaces, generic addresses, and faults."""

import numpy as np
import pytest
from operands import UNSIGNED, assert_same, operand_tuples, signed, size, unsigned, wrap
from virtual_device import kernel, register  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

TYPES = [f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in "bus"] + ["f32", "f64"]


@pytest.mark.parametrize("type", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"])
def test_moves_keep_every_bit(device, type):
    (x,) = operand_tuples({"f32": "f32", "f64": "f64"}.get(type, f"b{type[1:]}"), 1)
    assert_same(device.evaluate(f"mov.{type} %d, %x;", [unsigned(type)], x), x, x)


@pytest.mark.parametrize(("whole", "part", "count"), [(32, 16, 2), (64, 32, 2), (64, 16, 4)])
def test_mov_packs_and_unpacks(device, whole, part, count):
    columns = operand_tuples(f"b{part}", count)
    expected = sum(
        column.astype(UNSIGNED[whole // 8]) << UNSIGNED[whole // 8](part * k) for k, column in enumerate(columns)
    )
    names = ", ".join(f"%{name}" for name in "xyzw"[:count])
    assert_same(device.evaluate(f"mov.b{whole} %d, {{{names}}};", [UNSIGNED[whole // 8]], *columns), expected, *columns)
    outs = [UNSIGNED[part // 8]] * count
    names = ", ".join(f"%{name}" for name in "defg"[:count])
    for result, column in zip(device.evaluate(f"mov.b{whole} {{{names}}}, %x;", outs, expected), columns, strict=True):
        assert_same(result, column, expected)
    low_part = device.evaluate(f"mov.b{whole} {{%d{', _' * (count - 1)}}}, %x;", outs[:1], expected)
    assert_same(low_part, columns[0], expected)


def test_literals(device):
    body = """mov.f32 %d, 0fC0490FDB; mov.f64 %e, 0d400921FB54442D18; mov.u32 %f, 0x1F; mov.s32 %r1, -5;
    add.s32 %f, %f, %r1;
    mov.u64 %g, 18446744073709551615U;"""
    results = device.evaluate(body, [np.uint32, np.uint64, np.uint32, np.uint64], np.zeros(3, np.uint32))
    assert [hex(int(values[0])) for values in results] == [
        "0xc0490fdb",
        "0x400921fb54442d18",
        "0x1a",
        "0xffffffffffffffff",
    ]


def test_constant_expressions_as_operands(device):
    """Bits of a single number in a double are its lower half, as ptxas gives them."""
    body = """mov.f32 %d, (1.5)*-2.0; mov.f64 %e, 1e-3+.5; mov.u32 %f, (2+3)*4; mov.f64 %g, 0f3F812345;"""
    results = device.evaluate(body, [np.uint32, np.float64, np.uint32, np.uint64], np.zeros(3, np.uint32))
    assert [values[0].item() for values in results] == [0xC0400000, 0.501, 20, 0x3F812345]


@pytest.mark.parametrize("wide", [16, 32, 64])
@pytest.mark.parametrize("type", TYPES)
def test_loads_into_wider_registers(device, type, wide):
    """A signed type is sign-extended, others are zero-extended; a store takes the low bytes."""
    bits = 8 * size(type)
    if wide < bits or (type[0] == "f" and wide != bits):
        pytest.skip("PTX has no such register")
    (x,) = operand_tuples(type if type[0] == "f" else f"b{bits}", 1)
    numbers = [signed(value, bits) if type[0] == "s" else value for value in x.tolist()]
    text = kernel(
        f""".reg .b{wide} %v; .reg .b64 %o;
    ld.param.u64 %l0, [p0]; mul.wide.u32 %o, %i, {bits // 8}; add.u64 %l0, %l0, %o; ld.global.{type} %v, [%l0];
    ld.param.u64 %l1, [p1]; mul.wide.u32 %o, %i, {wide // 8}; add.u64 %l1, %l1, %o; st.global.b{wide} [%l1], %v;
    not.b{wide} %v, %v; st.global.{type} [%l0], %v;""",
        ["p0", "p1"],
    )
    x, numbers = x[: len(x) // 32 * 32], numbers[: len(x) // 32 * 32]
    result, (low_part, results) = device.run(text, [x, np.zeros(len(x), UNSIGNED[wide // 8])], len(x) // 32)
    assert result == 0
    assert_same(results, np.array([wrap(number, wide) for number in numbers], results.dtype), x)
    assert_same(low_part, ~x, x)


SPACES = {
    "global": ("ld.param.u64 %l2, [p1]; mul.wide.u32 %l3, %i, 16; add.u64 %l2, %l2, %l3;", "[%l2]"),
    "shared": (
        ".shared .align 16 .b8 area[512]; mul.lo.u32 %r1, %t, 16; mov.u32 %r2, area; add.u32 %r2, %r2, %r1;",
        "[%r2]",
    ),
    "local": (".local .align 16 .b8 own[48]; mov.u64 %l2, own; add.u64 %l2, %l2, 16;", "[%l2]"),
}


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    ("type", "count"), [("u8", 4), ("u16", 4), ("b32", 2), ("b32", 4), ("f32", 4), ("b64", 2), ("f64", 2)]
)
def test_vectors_in_every_space(device, space, type, count, generic):
    width = size(type)
    prologue, address = SPACES[space]
    modifiers = f"volatile.{space}" if space != "local" else space  # ptxas refuses volatile accesses of local memory
    if generic:
        prologue += " cvt.u64.u32 %l2, %r2;" if space == "shared" else ""
        prologue += f" cvta.{space}.u64 %l4, %l2;"
        modifiers, address = "volatile", "[%l4]"
    x = np.random.default_rng(3).integers(0, 256, 32 * 8 * 4, np.uint8)[: 32 * count * width]
    values = ", ".join(f"%v{k}" for k in range(count))
    reversed_values = ", ".join(f"%v{count - 1 - k}" for k in range(count))
    text = kernel(
        f""".reg .{register(unsigned(type))} %v<4>;
    {prologue} ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, {count * width}; add.u64 %l0, %l0, %l1;
    ld.global.v{count}.{type} {{{values}}}, [%l0]; st.{modifiers}.v{count}.{type} {address}, {{{reversed_values}}};
    mov.b{max(16, 8 * width)} %v0, %v1;
    ld.{modifiers}.v{count}.{type} {{{values}}}, {address}; st.global.v{count}.{type} [%l0], {{{values}}};""",
        ["p0", "p1"],
    )
    result, (results, _) = device.run(text, [x, np.zeros(512, np.uint8)])
    assert result == 0
    expected = x.view(unsigned(type)).reshape(32, count)[:, ::-1]
    assert_same(results.view(unsigned(type)), np.ascontiguousarray(expected).ravel(), x)


def test_constants_and_variables_of_the_module(device):
    head = """.const .align 4 .u32 table[4] = {10, 0x20, 30, 4294967295};
    .global .align 8 .f64 half = 0d3FE0000000000000;
    .global .align 4 .b8 bytes[4] = {1, 2, 3, 255}; .global .align 8 .u64 where = table;
    .const .f32 real[2] = {0f3F800000, -2.5};"""
    body = """and.b32 %r1, %i, 3; mul.wide.u32 %l0, %r1, 4; mov.u64 %l1, table; add.u64 %l1, %l1, %l0;
    ld.const.u32 %d, [%l1];
    ld.global.f64 %e, [half]; ld.global.u8 %r2, [bytes+3]; ld.const.u32 %r3, [table+4]; add.u32 %f, %r2, %r3;
    ld.const.b32 %g, [real+4];"""
    results = device.evaluate(body, [np.uint32, np.uint64, np.uint32, np.uint32], np.zeros(4, np.uint32), head=head)
    assert results[0].tolist() == [10, 32, 30, 0xFFFFFFFF]
    assert (results[1].view(float)[0], results[2][0], results[3].view(np.float32)[0]) == (0.5, 255 + 32, -2.5)


def test_isspacep_and_cvta(device):
    """isspacep identifies the state space, and cvta.to reverses cvta."""
    head = ".global .align 4 .u32 far;"
    body = """.shared .align 8 .b8 area[64]; .local .align 8 .b8 own[64]; mov.u64 %l0, area; cvta.shared.u64 %l1, %l0;
    mov.u64 %l2, own; cvta.local.u64 %l3, %l2; mov.u64 %l4, far; cvta.global.u64 %l5, %l4; mov.u32 %d, 0;
    isspacep.shared %p0, %l1; selp.u32 %r0, 1, 0, %p0; or.b32 %d, %d, %r0;
    isspacep.shared %p0, %l3; selp.u32 %r0, 2, 0, %p0; or.b32 %d, %d, %r0;
    isspacep.local %p0, %l3; selp.u32 %r0, 4, 0, %p0; or.b32 %d, %d, %r0;
    isspacep.local %p0, %l1; selp.u32 %r0, 8, 0, %p0; or.b32 %d, %d, %r0;
    isspacep.global %p0, %l5; selp.u32 %r0, 16, 0, %p0; or.b32 %d, %d, %r0;
    isspacep.global %p0, %l1; selp.u32 %r0, 32, 0, %p0; or.b32 %d, %d, %r0;
    cvta.to.shared.u64 %l6, %l1; sub.u64 %e, %l6, %l0; cvta.to.local.u64 %l6, %l3; sub.u64 %f, %l6, %l2;"""
    d, e, f = device.evaluate(body, [np.uint32, np.uint64, np.uint64], np.zeros(64, np.uint32), head=head)
    assert set(d.tolist()) == {1 + 4 + 16}
    assert not e.any()
    assert not f.any()


def test_isspacep_knows_constants_and_parameters(device):
    """A kernel's parameters are in the global space, too, and constants are not, as in ptxas' code for sm_80."""
    head = ".const .align 4 .u32 table[4]; .global .align 4 .u32 far;"
    body = """mov.u64 %l0, table; cvta.const.u64 %l1, %l0; cvta.param.u64 %l2, p0;
    mov.u64 %l4, far; cvta.global.u64 %l3, %l4;
    add.u64 %l4, %l1, 15; add.u64 %l5, %l1, 16; mov.u32 %d, 0; mov.u32 %e, 0; mov.u32 %f, 0;"""
    for bit, address in enumerate(["%l1", "%l2", "%l3", "%l4", "%l5"]):
        for space, result in (("const", "%d"), ("param", "%e"), ("global", "%f")):
            body += f"isspacep.{space} %p0, {address}; @%p0 or.b32 {result}, {result}, {1 << bit};\n"
    d, e, f = device.evaluate(body, [np.uint32, np.uint32, np.uint32], np.zeros(1, np.uint32), head=head)
    assert (d[0], e[0], f[0] & 0b1111) == (0b01001, 0b00010, 0b0110)


def test_bytes_are_packed_and_unpacked(device):
    """Registers of 8 bits: the first is the lowest, and a wider load into one of 16 bits leaves no upper bits."""
    values = np.array([0x81FF7F00, 0xFFFFFFFF, 0x01020304], np.uint32)
    body = """.reg .b8 %y<4>; .reg .b16 %h; mov.b32 {%y0, %y1, %y2, %y3}, %x; mov.b32 %d, {%y3, %y2, 7, %y0};
    mov.b16 %h, {%y1, %y0}; cvt.u32.u16 %e, %h; mov.b16 {_, %y0}, %h; cvt.s32.s8 %f, %y0;"""
    d, e, f = device.evaluate(body, [np.uint32, np.uint32, np.int32], values)
    parts = values.view(np.uint8).reshape(-1, 4)
    assert d.view(np.uint8).reshape(-1, 4).tolist() == [[x[3], x[2], 7, x[0]] for x in parts]
    assert e.tolist() == [int(x[1]) | int(x[0]) << 8 for x in parts]
    assert f.tolist() == parts[:, 0].view(np.int8).tolist()


def test_registers_of_128_bits(device):
    """They are moved from and to two of 64 or four of 32 bits, and loaded and stored as one access."""
    values = np.arange(1, 5, dtype=np.uint32)
    body = """.reg .b128 %q<3>; .shared .align 16 .b8 area[2048];
    mul.wide.u32 %l0, %x, 3; add.u64 %l1, %l0, 7; mov.b128 %q0, {%l0, %l1}; mov.b128 %q1, %q0;
    mov.u32 %r0, area; mad.lo.u32 %r0, %i, 16, %r0; st.shared.b128 [%r0], %q1; ld.relaxed.cta.shared.b128 %q2, [%r0];
    mov.b128 {%r1, _, %r3, %r4}, %q2; cvt.u64.u32 %d, %r1; cvt.u64.u32 %e, %r3; mov.b128 %q0, {%r3, %r4, %r1, 9};
    mov.b128 {_, %f}, %q0;"""
    d, e, f = device.evaluate(body, [np.uint64, np.uint64, np.uint64], values)
    assert d.tolist() == (values * 3).tolist()
    assert e.tolist() == (values * 3 + 7).tolist()
    assert f.tolist() == [int(x) * 3 + (9 << 32) for x in values]


ILLEGAL, MISALIGNED = 700, 716
FAULTS = {
    "behind an array": ("ld.param.u64 %l0, [p0]; add.u64 %l0, %l0, 4096; ld.global.u32 %r1, [%l0];", ILLEGAL),
    "just behind an array": ("ld.param.u64 %l0, [p0]; ld.global.u32 %r1, [%l0+4000];", ILLEGAL),
    "before an array": ("ld.param.u64 %l0, [p0]; st.global.u32 [%l0-4], %r1;", ILLEGAL),
    "nowhere": ("mov.u64 %l0, 0; ld.u32 %r1, [%l0];", ILLEGAL),
    "at the end of all": ("mov.u64 %l0, -4; ld.u32 %r1, [%l0];", ILLEGAL),
    "of one lane": (
        "ld.param.u64 %l0, [p0]; setp.eq.u32 %p0, %t, 31; @%p0 add.u64 %l0, %l0, 8192; ld.global.u32 %r1, [%l0];",
        ILLEGAL,
    ),
    "behind shared memory": (".shared .b32 s[4]; st.shared.u32 [s+16], %r1;", ILLEGAL),
    "before shared memory": (".shared .b32 s[4]; mov.u32 %r2, s; st.shared.u32 [%r2-4], %r1;", ILLEGAL),
    "behind local memory": (".local .b32 s[4]; st.local.u32 [s+16], %r1;", ILLEGAL),
    "behind parameters": ("ld.param.u64 %l0, [p0+8];", ILLEGAL),
    "atomic nowhere": ("mov.u64 %l0, 64; red.global.add.u32 [%l0], 1;", ILLEGAL),
    "odd": ("ld.param.u64 %l0, [p0]; ld.global.u16 %h1, [%l0+1];", MISALIGNED),
    "odd vector": ("ld.param.u64 %l0, [p0]; ld.global.v2.u32 {%r1, %r2}, [%l0+4];", MISALIGNED),
    "odd shared": (".shared .align 8 .b32 s[4]; ld.shared.u64 %l0, [s+4];", MISALIGNED),
    "odd atomic": ("ld.param.u64 %l0, [p0]; atom.global.add.u64 %l1, [%l0+4], 1;", MISALIGNED),
    "a trap": ("trap;", 719),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_cuda_errors(device, name):
    body, expected = FAULTS[name]
    result, _, stderr = device.run_in_child(kernel(body, ["p0"]), [np.zeros(1000, np.uint32)])
    assert result == expected
    assert " in k" in stderr
