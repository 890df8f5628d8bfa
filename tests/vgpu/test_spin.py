"""A thread that spins on memory is parked until another thread writes, so a launch is short in every order."""

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

SCHEDULES = ["serial", "reverse", "random:1", "random:2", "adversary:3", "atomics:4", "pct:5,4"]
LOOKS = [
    "ld.volatile.global.u32 %r1, [%l2];",
    "ld.global.cg.u32 %r1, [%l2];",
    "ld.global.cv.u32 %r1, [%l2];",
    "ld.acquire.gpu.global.u32 %r1, [%l2];",
    "ld.relaxed.gpu.global.u32 %r1, [%l2];",
    "atom.global.or.b32 %r1, [%l2], 0;",
    "atom.global.cas.b32 %r1, [%l2], 0, 0;",
]
# Block k waits for block k - 1, then adds its own index: a chain, as in a single-pass scan.
CHAIN = """ld.param.u64 %l0, [p0]; mov.u32 %r0, %ctaid.x; mul.wide.u32 %l1, %r0, 4; add.u64 %l1, %l0, %l1;
add.u64 %l2, %l1, -4; mov.u32 %r1, 1; setp.eq.u32 %p1, %r0, 0; @%p1 bra FIRST;
WAIT: LOOK setp.eq.u32 %p2, %r1, 0; membar.gl; @%p2 bra WAIT;
FIRST: add.u32 %r1, %r1, %r0; setp.eq.u32 %p3, %t, 0; @%p3 st.volatile.global.u32 [%l1], %r1;"""
# All lanes compete for one lock.
LOCK = """ld.param.u64 %l0, [p0];
TAKE: atom.global.cas.b32 %r1, [%l0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKE;
ld.volatile.global.u32 %r2, [%l0+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%l0+4], %r2;
membar.gl; atom.global.exch.b32 %r3, [%l0], 0;"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("look", LOOKS)
def test_a_chain_of_blocks_takes_few_instructions(device, look, schedule):
    blocks = 200
    text = kernel(CHAIN.replace("LOOK", look), ["p0"])
    code, (values,), stderr = device.run_in_child(
        text, [np.zeros(blocks, np.uint32)], schedule, limit=32 * blocks * 100, grid=blocks, block=32
    )
    assert code == 0, stderr
    assert values.tolist() == [1 + k * (k + 1) // 2 for k in range(blocks)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (4, 96)])
def test_lanes_of_one_warp_take_a_lock_in_turn(device, schedule, grid, block):
    threads = grid * block
    code, (values,), stderr = device.run_in_child(
        kernel(LOCK, ["p0"]), [np.zeros(2, np.uint32)], schedule, limit=threads * threads * 100, grid=grid, block=block
    )
    assert code == 0, stderr
    assert values.tolist() == [0, threads]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_who_waits_in_vain_ends_with_an_error(device, schedule):
    text = kernel("ld.param.u64 %l2, [p0]; WAIT: " + LOOKS[0] + " setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;", ["p0"])
    code, _, stderr = device.run_in_child(text, [np.zeros(1, np.uint32)], schedule, limit=10**6, grid=6, block=64)
    assert code == 702
    assert "no end within the instructions allowed" in stderr
