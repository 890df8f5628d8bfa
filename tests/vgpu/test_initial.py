"""Initializers of a module's variables: those that ptxas accepts are read, and those that it refuses are refused."""

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

HEAD = """.global .align 16 .u32 x[4] = {11, 22, 33, 44}; .global .align 16 .u32 $x[4] = {55, 66, 77, 88};
.const .u32 %c = 99; .global .u32 _u = 111; .shared .u32 s;
.func f() { ret; }
"""
# A table of pointers, and the words that they point to.
POINTERS = {
    "t[2] = {x, $x}": [11, 55], "t[2] = {generic(x), generic($x)}": [11, 55], "t[2] = {x+8, generic($x)+4}": [33, 66],
    "t[2] = {x+4*2, x+4+8}": [33, 44], "t[3] = {generic(%c), _u, $x+12}": [99, 111, 88], "t = %c": [99],
    "t[] = {x, $x, x+4}": [11, 55, 22], "t[2][2] = {{x}, {$x, x}}": [11, None, 55, 11],
    "t[2] = {$x+16-4, x+-0+4}": [88, 22],
}  # fmt: skip
# A variable, and its first words of 32 bits.
VALUES = {
    ".u32 t[2][2] = {{1},{3,4}}": [1, 0, 3, 4], ".u32 t[4] = {1,2}": [1, 2, 0, 0], ".u32 t[] = {1,2,3}": [1, 2, 3],
    ".v2 .u32 t[2] = {{1,2},{3,4}}": [1, 2, 3, 4], ".u32 t = 3*4+1": [13], ".s32 t[2] = {-1, ~0}": [2**32 - 1] * 2,
    ".f32 t[2] = {1.0, -1.0}": [0x3F800000, 0xBF800000], ".f32 t = 0f3f800000": [0x3F800000],
    ".b32 t = 0f3f800000": [0x3F800000], ".f64 t = 0f3f800000": [0x3F800000, 0],  # its bits, as ptxas gives them
    ".f32 t[4] = {1e-3, .5, -.5e1, 1.5E+3}": [0x3A83126F, 0x3F000000, 0xC0A00000, 0x44BB8000],
    ".f32 t[4] = {1.5+1.5, 1.-2.0*3.0, (1.5), 3.0/-2.0}": [0x40400000, 0xC0A00000, 0x3FC00000, 0xBFC00000],
    ".f64 t = 0d3FF0000000000000+1.0": [0, 0x40000000], ".f64 t = 1e300*1e300": [0, 0x7FF00000],
    ".u32 t[2] = {}": [0, 0], ".u32 t[2][2] = {{}, {1}}": [0, 0, 1, 0],
    ".b128 t[2] = {-1, 2}": [2**32 - 1, 2**32 - 1, 0, 0, 2, 0, 0, 0],
    ".u8 t[4] = {300, 1, 0xff, 0}": [0xFF012C],
    ".attribute(.managed) .u32 t = 5": [5],
}  # fmt: skip
REFUSED = """.u64 t = 8+x|.u64 t = generic(x+8)|.u64 t[1] = x|.u8 t[2] = {0xFFF(x), 1}|.u8 t[2] = {mask(x), 1}
.u64 t = f+8
.u32 t[2][2] = {1,2,3,4}|.u32 t[4] = {1,2,3,4,5}|.f32 t = 1|.u32 t = 1.0|.u32 t = 0f3f800000|.u32 t = "abc"|.u32 t = %r1
.u64 t = nosuch|.u64 t = $nosuch|.u32 t = 1 2|.u32 t = {1,,2}|.u32 t[2] = {1,}|.u32 t =|.u64 t = s|.u64 t = generic(s)
.s64 t = -x|.u64 t = x*2|.u64 t = x-$x|.u32 5|.attribute(.foo) .u32 t|.u64 t = 0xff(x|.u64 t = generic(x
.f64 t[2] = {1.0, x+1.5}|.u64 t = x-4|.u64 t = generic(x)-4|.u64 t = t|.u64 t = generic(t)|.u64 t = generic(f)
.f64 t = x|.b64 t = x|.s64 t = x|.u16 t = x|.b128 t = x|.b8 t[2] = {0xFF(x), 1}|.u16 t = 0xFF(x)|.pred t
.u64 t = {}|.u64 t[0] = {}|.f32 t = 1e-400
.f32 t = 1.5+1|.f32 t = 0f3f800000+1.0|.f32 t = 1.0/0.0|.f32 t = 1.0%2.0|.f32 t = 1 ? 2.0 : 3.0|.f32 t = 1.5e
.f32 t = !1.5|.f32 t = 1e+|.f32 t = 0x1e-3|.f32 t = 2*1.5"""


def read_words(device, declaration, count, follow=False):
    """Return the first 32-bit words of `t`, or the words that its pointers point to."""
    load_pointer = "mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1; ld.global.u64 %l0, [%l0]; setp.ne.u64 %p1, %l0, 0;"
    load_address = "mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; setp.eq.u32 %p1, 0, 0;"
    body = f"""setp.ge.u32 %p0, %i, {count}; @%p0 exit; mov.u64 %l0, t; {load_pointer if follow else load_address}
    mov.u32 %r9, 0; @%p1 ld.u32 %r9, [%l0]; ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1;
    st.global.u32 [%l0], %r9;"""
    code, (result,) = device.run(
        kernel(".reg .b32 %r9;" + body, ["p0"], head=HEAD + declaration), [np.zeros(count, np.uint32)]
    )
    assert code == 0
    return result.tolist()


@pytest.mark.parametrize("text", POINTERS)
def test_initializers_with_addresses(device, text):
    expected = [word or 0 for word in POINTERS[text]]
    assert read_words(device, f".global .u64 {text};", len(expected), follow=True) == expected


@pytest.mark.parametrize("text", VALUES)
def test_initializers_with_values(device, text):
    assert read_words(device, f".global .align 8 {text};", len(VALUES[text])) == VALUES[text]


def test_bytes_of_addresses(device):
    """PTX 7.1 and newer write a table of strings as an array of bytes."""
    masks = ", ".join(f"0x{'ff' + '00' * k}(generic($x)+4)" for k in range(8))
    assert read_words(device, f".global .align 8 .u8 t[8] = {{{masks}}};", 1, follow=True) == [66]


def test_functions_in_tables(device):
    """The table has functions whose names begin with a dollar."""
    head = "".join(
        f".func (.param .b32 r) {name}() {{ .reg .b32 %a; mov.u32 %a, {value}; st.param.b32 [r], %a; ret; }}\n"
        for name, value in (("$one", 1), ("_two", 2))
    )
    body = """{ .reg .b64 %at; .param .b32 r; and.b32 %r1, %x, 1; mov.u64 %at, t; mul.wide.u32 %l1, %r1, 8;
    add.u64 %at, %at, %l1; ld.global.u64 %at, [%at]; proto: .callprototype (.param .b32 _) _ ();
    call (r), %at, (), proto;    ld.param.b32 %d, [r]; }"""
    x = np.arange(40, dtype=np.uint32)
    result = device.evaluate(body, [np.uint32], x, head=f"{head}.global .u64 t[2] = {{$one, _two}};")
    assert result.tolist() == (1 + x % 2).tolist()


def test_invalid_initializers_are_refused(device):
    texts = REFUSED.replace("\n", "|").split("|")
    accepted = [text for text in texts if device.load(kernel("ret;", ["p0"], head=f"{HEAD}.global {text};"))[0] == 0]
    assert not accepted, accepted
