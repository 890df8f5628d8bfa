"""alloca in kernels, and deep recursion.

LOAD reads the thread's value of the array p0 into %n, and STORE writes %r9 back in its place.
"""

import numpy as np
import pytest
from virtual_device import LOAD, STORE, kernel

RESERVE = ".reg .b64 %a<6>; .reg .pred %q; .reg .b32 %s<6>;"
# Each lane writes 1, 2, ... into an array of its own length, allocates another one, and sums up the first.
SUM = (
    RESERVE
    + LOAD
    + """add.u32 %s0, %n, 1; mul.wide.u32 %a0, %s0, 4; alloca.u64 %a1, %a0, 64; and.b64 %a5, %a1, 63; mov.u32 %s1, 0;
    fill: mul.wide.u32 %a2, %s1, 4; add.u64 %a2, %a1, %a2; add.u32 %s1, %s1, 1; st.local.u32 [%a2], %s1;
    setp.lt.u32 %q, %s1, %s0; @%q bra fill;
    stacksave.u64 %a3; alloca.u64 %a4, %a0; st.local.u32 [%a4], 1000; stackrestore.u64 %a3;
    cvta.local.u64 %a1, %a1; mov.u32 %s1, 0; cvt.u32.u64 %r9, %a5;
    sum: mul.wide.u32 %a2, %s1, 4; add.u64 %a2, %a1, %a2; ld.u32 %s2, [%a2]; add.u32 %r9, %r9, %s2;
    add.u32 %s1, %s1, 1; setp.lt.u32 %q, %s1, %s0; @%q bra sum;"""
    + STORE
)


@pytest.mark.parametrize("schedule", ["serial", "random:1"])
def test_alloca_gives_each_lane_its_own_memory(device, schedule):
    values = np.arange(128, dtype=np.uint32) % 37
    code, (sums, *_), stderr = device.run_in_child(kernel(SUM, ["p0"]), [values], schedule, grid=2, block=64)
    assert code == 0, stderr
    assert sums.tolist() == [(value + 1) * (value + 2) // 2 for value in values.tolist()]


def test_stack_memory_is_reused(device):
    """A stack of 32 KiB serves a megabyte of allocations, one after the other."""
    body = """.reg .b64 %a<4>; .reg .pred %q; mov.u32 %d, 0; stacksave.u64 %a0; mov.u64 %a3, 1024;
    loop: alloca.u64 %a1, %a3; setp.eq.u32 %q, %d, 0; @%q mov.u64 %a2, %a1; st.local.u32 [%a1+1020], %d;
    stackrestore.u64 %a0; add.u32 %d, %d, 1; setp.lt.u32 %q, %d, 1000; @%q bra loop; sub.u64 %a2, %a2, %a1;
    cvt.u32.u64 %d, %a2;"""
    assert device.evaluate(body, [np.uint32], np.zeros(8, np.uint32)).tolist() == [0] * 8


@pytest.mark.parametrize("text", ["mov.u64 %l1, 40000; alloca.u64 %l2, %l1;", "stackrestore.u64 4;"])
def test_an_alloca_beyond_the_stack_is_an_error(device, text):
    code, *_ = device.run_in_child(kernel(text, ["p0"]), [np.zeros(1, np.uint32)])
    assert code not in (0, 209)


@pytest.mark.parametrize(
    "text", ["alloca.u64 %l1, 8, 3", "alloca.u32 %r1, 8", "alloca.u64 5, 8", "stacksave.u64 7", "alloca.u64 %l1"]
)
def test_invalid_stack_instructions_are_refused(device, text):
    code, module = device.load(kernel(f"{text};", ["p0"]))
    assert code or device.function(module)[0]


def depth(levels):
    """Return the body and the head of a kernel that recurses `levels` deep."""
    head = """.func (.param .b32 r) down(.param .b32 n) { .reg .b32 %a<5>; .reg .pred %p; ld.param.u32 %a0, [n];
    mov.u32 %a1, 0; setp.eq.u32 %p, %a0, 0; @%p bra done; sub.u32 %a2, %a0, 1;
    { .param .b32 q; .param .b32 s; st.param.b32 [q], %a2; call.uni (s), down, (q); ld.param.b32 %a1, [s]; }
    add.u32 %a1, %a1, %a0; done: st.param.b32 [r], %a1; ret; }"""
    body = f"""{{ .param .b32 q; .param .b32 s; mov.u32 %r1, {levels}; st.param.b32 [q], %r1; call.uni (s), down, (q);
    ld.param.b32 %d, [s]; }}"""
    return body, head


def test_deep_recursion(device):
    body, head = depth(1000)
    assert device.evaluate(body, [np.uint32], np.zeros(64, np.uint32), head=head).tolist() == [500500] * 64


def test_recursion_without_end_is_an_error(device):
    body, head = depth(10**6)
    text = kernel(".reg .b32 %d;" + body, ["p0"], head=head)
    code, _, stderr = device.run_in_child(text, [np.zeros(1, np.uint32)], limit=10**9)
    assert code, stderr
