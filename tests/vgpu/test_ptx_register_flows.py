"""VGPU_CHECK=order follows unspecified values through PTX's registers, whatever their width.

In a block of 8 threads, EIGHT leaves a sum in %r1 that is unspecified in all lanes but 0. Memory that nothing wrote is
unspecified, too. OWN, with which EIGHT begins, sets %l0 to the array's address and %l1 to that of the thread's word.
"""

import pytest
from order_verdicts import verdicts
from sass_order_kernels import EIGHT
from test_order import OWN, kernel

SHARED = ".shared .align 16 .b8 word[1024];"
# %l3: the address of the thread's own 16 bytes.
OWN_16 = f"{OWN} mov.u64 %l2, word; mul.wide.u32 %l3, %t, 16; add.u64 %l3, %l2, %l3;"
STORE = "st.global.u32 [%l1], VALUE;"


def store(register):
    return STORE.replace("VALUE", register)


def write_shared(*words):
    """Return stores to these of the four words of the thread's own 16 bytes."""
    return OWN_16 + "".join(f"st.shared.u32 [%l3+{4 * word}], %t;" for word in words)


COMPARED = f"{EIGHT} setp.gt.u32 %p2, %r1, 9;"
TWO_VALUES = "ld.shared.v2.u64 {%l5, %l6}, [%l3]; mov.b64 {%r1, %r2}, %l5; mov.b64 {%r3, %r4}, %l6;"
BYTES = f"{OWN_16} st.shared.u16 [%l3], 7; ld.shared.v4.u8 {{%h1, %h2, %h3, %h4}}, [%l3]; cvt.u32.u16 %r2, FROM;"
INDEPENDENT = {
    "the second of two values": write_shared(0, 2, 3) + TWO_VALUES + store("%r3"),
    "a value that is not used": write_shared(0) + TWO_VALUES + store("%t"),
    "a register of 8 bytes that is overwritten": (
        f"{EIGHT} cvt.u64.u32 %l5, %r1; mov.u64 %l5, 7; cvt.u32.u64 %r2, %l5; {store('%r2')}"
    ),
    "a predicate that is overwritten": (f"{COMPARED} setp.gt.u32 %p2, %t, 9; selp.u32 %r2, %t, 7, %p2; {store('%r2')}"),
    "a loaded word": f"{EIGHT} mov.u32 %r3, %r1; ld.volatile.global.u32 %r3, [%l1]; {store('%r3')}",
    "a value that only lane 0 has": (
        f"{EIGHT} shfl.sync.idx.b32 %r2|%p2, %r1, 0, 31, -1; selp.u32 %r2, %r2, 7, %p2; {store('%r2')}"
    ),
    "a shuffle's mask in a register": (
        f"{EIGHT} mov.u32 %r3, -1; shfl.sync.idx.b32 %r2, %r1, 0, 31, %r3; {store('%r2')}"
    ),
}
DEPENDENT = {
    "the first of two values": write_shared(0, 2, 3) + TWO_VALUES + store("%r2"),
    "the fourth byte": BYTES.replace("FROM", "%h4") + store("%r2"),
    "the upper half of a register": f"{EIGHT} mov.b64 %l5, {{%t, %r1}}; mov.b64 {{%r2, %r3}}, %l5; {store('%r3')}",
    "a half of a register": f"{EIGHT} cvt.u16.u32 %h1, %r1; cvt.u32.u16 %r2, %h1; {store('%r2')}",
    "a carry": f"{EIGHT} add.cc.u32 %r2, %r1, 0x7fffffff; addc.u32 %r2, %t, 0; {store('%r2')}",
    "an inverted predicate": (
        f"{COMPARED} setp.lt.and.u32 %p1, %t, 99, !%p2; selp.u32 %r2, %t, 7, %p1; {store('%r2')}"
    ),
    "a selecting predicate": f"{COMPARED} selp.u32 %r2, %t, 7, %p2; {store('%r2')}",
    "a moved vector": f"{EIGHT} mov.v2.u32 {{%r2, %r3}}, {{%t, %r1}}; {store('%r3')}",
    "a stored operand": f"{EIGHT} {store('%r1')}",
    "an address": (
        f"{EIGHT} and.b32 %r2, %r1, 7; mul.wide.u32 %l5, %r2, 4; add.u64 %l5, %l0, %l5; st.global.u32 [%l5], 1;"
    ),
    "an atomic's operand": f"{EIGHT} red.global.add.u32 [%l0], %r1;",
    "a shuffle's mask": f"{EIGHT} or.b32 %r2, %r1, -1; shfl.sync.idx.b32 %r3, %t, 0, 31, %r2; {store('%t')}",
    "a shuffle's bounds": f"{EIGHT} and.b32 %r2, %r1, 31; shfl.sync.down.b32 %r3, %t, 1, %r2, -1; {store('%r3')}",
    "a shuffle's predicate": (
        f"{EIGHT} and.b32 %r2, %r1, 31; shfl.sync.down.b32 %r3|%p1, %t, 1, %r2, -1; selp.u32 %r2, 5, 7, %p1;"
        + store("%r2")
    ),
    "a vote": f"{COMPARED} vote.sync.any.pred %p1, %p2, 255; selp.u32 %r2, %t, 7, %p1; {store('%r2')}",
    "an argument that is read back": (
        "{ .param .b32 n; " + EIGHT + "st.param.b32 [n], %r1; ld.param.b32 %r2, [n]; } " + store("%r2")
    ),
    "an argument of a call": (
        "{ .param .b32 n; .param .b32 r; "
        + EIGHT
        + "st.param.b32 [n], %r1; call (r), same, (n); ld.param.b32 %r2, [r]; } "
        + store("%r2")
    ),
}  # fmt: skip
SAME = """.func (.param .b32 r) same(.param .b32 n) { .reg .b32 %a; ld.param.u32 %a, [n]; st.param.b32 [r], %a; ret; }
"""


@pytest.fixture(scope="module", params=["serial", "random:1"])
def verdict_by_kernel(request):
    bodies = {**INDEPENDENT, **DEPENDENT}
    return verdicts(
        {name: (kernel(body, ["p0"], head=SHARED + SAME), 2, 8) for name, body in bodies.items()}, request.param
    )


@pytest.mark.parametrize("name", INDEPENDENT)
def test_what_overwrites_or_leaves_it_is_proved(verdict_by_kernel, name):
    assert verdict_by_kernel[name]["proved"], verdict_by_kernel[name]


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_uses_it_is_not_proved(verdict_by_kernel, name):
    assert not verdict_by_kernel[name]["proved"]
    reasons = {reason["reason"] for reason in verdict_by_kernel[name]["reasons"]}
    assert reasons <= {"inactive_lane", "uninitialized"}
