"""Kinds of operands of instructions: the device accepts and refuses the same ones as ptxas 13.0."""

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

REGISTERS = ".reg .f32 %f<5>; .reg .f64 %d<5>; .reg .u32 %u<5>; .reg .b16 %b<5>; .reg .b8 %y<5>;\n.reg .b128 %q<3>;\n"
REFUSED = """
add.u32 5, %r1, %r2;  mov.u32 %tid.x, %r1;  mov.u32 5, %r1;  ld.global.u32 5, [%l1]
add.u32 _, %r1, %r2;  mov.u32 _, %r1;  ld.global.u32 _, [%l1];  ld.global.v2.u32 {_, _}, [%l1]
add.u32 %r1, _, %r2;  st.global.v2.u32 [%l1], {_,%r1};  mov.b64 %l1, {_, %r1};  setp.eq.u32 1, %r1, %r2
shfl.sync.idx.b32 _|%p1, %r1, 0, 31, -1;  and.pred 1, %p1, %p2;  cvt.u32.u16 5, %h1;  atom.global.add.u32 5, [%l1], 1
add.u32 %r1, -%r2, %r3;  add.u32 %r1, !%r2, %r3;  add.u32 %r1, %r2+4, %r3;  setp.eq.u32 !%p1, %r1, %r2
add.f32 %f1, %f2, 1;  add.u32 %r1, %r2, 1.5;  add.u32 %r1, %r2, 0f3f800000;  mov.b32 %r1, 1.0
add.u32 %r1, %f1, %r2;  add.f32 %f1, %u1, %f2;  mov.u32 %r1, %f1;  mov.f32 %f1, %u1
st.global.u32 [%l1], %f1;  ld.global.f32 %u1, [%l1];  st.global.f32 [%l1], 1;  st.global.u32 [%l1], 1.5
st.global.u32 [%l1], %tid.x;  add.u32 %r1, %tid.x, 1;  mov.b64 %l1, 0f3f800000;  mov.f32 %f1, -0f3f800000
setp.eq.f32 %p1, %f1, 1;  selp.u32 %r1, %f1, %f2, %p1;  atom.global.add.f32 %f1,[%l1],1;  shl.b32 %r1, %r2, %h1
mov.u64 %l1, 1.0+2.0;  mov.u64 %l1, 5/0;  mov.u64 %l1, 5 5;  bfe.u32 7, %r1, 1, 2
st.global.u16 [%l1], %y1;  ld.global.b16 %y1, [%l1];  add.u16 %y1, %y2, %y3;  cvt.u32.u16 %r1, %y1
selp.b16 %h1, %y1, %h2, %p1
ld.global.v2.b8 {%y1, %h1}, [%l1];  mov.b32 %r1, {%h1, %y1};  mov.b32 %r1, {%h1, %h2, %h3, %h4};  mov.b64 {_, _}, %l1
mov.b16 %h1, %y1;  vadd2.s32.s32.s32 %r1, 4, %r2, %r3;  vmin4.u32.u32.u32 %r1, %r2, %r3, 4;  add. s32 %r1, %r2, %r3
mov.b64 %l1, %q1;  mov.b128 %q1, {%l1, %r1};  mov.b128 {_, _}, %q1;  ld.global.v2.b128 {%q1, %q2}, [%l1]
"""
ACCEPTED = """
mov.b64 {%r1, _}, %l1;  ld.global.v4.u8 {%b1,_,_,%b2}, [%l1]
atom.global.add.u32 _, [%l1], 1;  setp.eq.u32 %p1|_, %r1, %r2
st.global.f32 [%l1], %r1;  ld.global.b32 %f1, [%l1];  and.b32 %f1, %f2, %u1;  selp.u32 %r1, 1, 2, 1
add.f32 %f1, %f2, 0d3ff0000000000000;  add.f64 %d1, %d2, 0f3f800000;  mov.pred %p1, !%p2;  mov.u16 %h1, 0x12345
st.global.u8 [%l1], %y1;  ld.global.s8 %y1, [%l1];  cvt.u32.u8 %r1, %y1;  mov.b32 %r1, {%y1, 5, %y3, %y4}
mov.b16 {%y1, _}, %h1
add .s32 %r1, %r2, %r3;  ld.global .u32 %r1, [%l1];  ld/**/.global.u32 %r1, [%l1];  @%p1 ret .uni
isspacep.const %p1, %l1;  isspacep.param::entry %p1, %l1;  mov.b128 {%r1, _, _, %r2}, %q1
ld.relaxed.gpu.b128 %q1, [%l1]
"""


def statements(text):
    """Return the statements of the text."""
    return [part.strip() for part in text.replace("\n", ";").split(";") if part.strip()]


def result(device, statement):
    """Return CUDA's result of decoding a kernel with the statement."""
    code, module = device.load(kernel(f"{REGISTERS}{statement};", ["p0"]))
    return code or device.function(module)[0]


def test_invalid_operands_are_refused(device):
    accepted = [statement for statement in statements(REFUSED) if result(device, statement) == 0]
    assert not accepted, accepted


def test_valid_operands_are_accepted(device):
    refused = [statement for statement in statements(ACCEPTED) if result(device, statement)]
    assert not refused, refused


CONSTANTS = {
    "~5": ~5, "!5": 0, "5+3*2": 11, "-5/2": -2, "-5 % 3": -2, "(.u64)1<<40": 1 << 40, "1?2:3": 2, "-5>>1": -3,
    "0b101": 5,    "017": 15, "-(5)": -5, "7&3|8^1": 7 & 3 | 8 ^ 1, "5==5": 1, "2<1||3>=3": 1, "5U": 5, "WARP_SZ*2": 64,
    "0xffffffffffffffff>>60": 15,
}  # fmt: skip


@pytest.mark.parametrize("text", CONSTANTS)
def test_constant_expressions(device, text):
    values = device.evaluate(f"mov.u64 %d, {text};", [np.uint64], np.zeros(1, np.uint32))
    assert int(values[0]) == CONSTANTS[text] % 2**64


@pytest.mark.parametrize("op", ["and", "or", "xor", "not", "mov"])
def test_inverted_predicates(device, op):
    x = np.arange(8, dtype=np.uint32)
    second = ", !%p1" if op in ("and", "or", "xor") else ""
    body = f"""and.b32 %r1, %x, 1; setp.ne.u32 %p0, %r1, 0; and.b32 %r1, %x, 2; setp.ne.u32 %p1, %r1, 0;
    {op}.pred %p2, !%p0{second}; selp.u32 %d, 1, 0, %p2;"""
    a, b = (x & 1) == 0, (x & 2) == 0
    expected = {"and": a & b, "or": a | b, "xor": a ^ b, "not": ~a, "mov": a}[op]
    assert device.evaluate(body, [np.uint32], x).tolist() == expected.astype(int).tolist()


STORES = {  # statement: the bytes in memory
    "u8 [%l0], 300": b"\x2c", "b8 [%l0], -1": b"\xff", "v4.b8 [%l0], {0,1,2,3}": b"\0\1\2\3", "u16 [%l0], 513": b"\1\2",
    "v2.u32 [%l0], {%i, 7}": b"\0\0\0\0\7\0\0\0", "v2.f32 [%l0], {0f3f800000, %i}": b"\0\0\x80\x3f\0\0\0\0",
    "v2.u64 [%l0], {5, %l0}": b"\5\0\0\0\0\0\0\0", "f64 [%l0], 2.5": b"\0\0\0\0\0\0\4\x40",
    "f32 [%l0], 1.0": b"\0\0\x80\x3f",
    "v2.u16 [%l0], {%h1, 9}": b"\1\0\x09\0", "f32 [%l0], 0d3ff0000000000000": b"\0\0\x80\x3f",
}  # fmt: skip


@pytest.mark.parametrize("text", STORES)
def test_constants_are_stored(device, text):
    body = f"setp.ne.u32 %p0, %i, 0; @%p0 exit; mov.u16 %h1, 1; ld.param.u64 %l0, [p0]; st.global.{text};"
    code, (values,) = device.run(kernel(body, ["p0"]), [np.full(32, 0xEE, np.uint8)])
    assert code == 0
    assert values.tobytes()[: len(STORES[text])] == STORES[text]


def test_constants_become_arguments(device):
    head = """.func (.param .b32 r) sum(.param .align 4 .b8 p[4]) { .reg .b32 %a<5>;
    ld.param.u8 %a0, [p]; ld.param.u8 %a1, [p+3]; add.u32 %a0, %a0, %a1; st.param.b32 [r], %a0; ret; }"""
    body = """{ .param .align 4 .b8 q[4]; .param .b32 s; st.param.v4.b8 [q], {3, 0, 0, 4};
    call.uni (s), sum, (q); ld.param.b32 %d, [s]; }"""
    assert device.evaluate(body, [np.uint32], np.zeros(40, np.uint32), head=head).tolist() == [7] * 40
