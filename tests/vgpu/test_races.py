"""VGPU_CHECK=races finds planted races, and none where a barrier, a fence or an atomic gives an order."""

import numpy as np
import pytest
from virtual_device import kernel

NEIGHBOUR = """mov.u64 %l0, word; mul.wide.u32 %l1, %t, 4; add.u64 %l1, %l0, %l1; st.shared.u32 [%l1], %t;
ORDER
xor.b32 %r1, %t, DISTANCE; mul.wide.u32 %l2, %r1, 4; add.u64 %l2, %l0, %l2; ld.shared.u32 %r2, [%l2];"""
SHARED = ".shared .align 4 .b8 word[512];"
# Block 0 writes and raises a flag; block 1 waits for the flag and reads.
HANDED_ON = """ld.param.u64 %l0, [p0]; mov.u32 %r0, %ctaid.x; setp.eq.u32 %p1, %r0, 1; @%p1 bra WAIT;
st.global.u32 [%l0+8], 7; FENCE st.volatile.global.u32 [%l0], 1; exit;
WAIT: ld.volatile.global.u32 %r1, [%l0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT; FENCE
ld.global.u32 %r2, [%l0+8]; st.global.u32 [%l0+4], %r2;"""


@pytest.fixture(params=["serial", "random:1", "adversary:1"])
def races(device, request, monkeypatch):
    monkeypatch.setenv("VGPU_CHECK", "races")

    def found(text, **how):
        code, (made,), said = device.apart(text, [np.zeros(128, np.uint32)], request.param, **how)
        assert code == 0, said
        return [line for line in said.splitlines() if "race" in line], made

    return found


def neighbour(order, distance):
    return kernel(NEIGHBOUR.replace("ORDER", order).replace("DISTANCE", str(distance)), ["p0"], head=SHARED)


@pytest.mark.parametrize(
    ("order", "distance", "raced"),
    [
        ("", 64, True),
        ("bar.sync 0;", 64, False),
        ("bar.warp.sync -1;", 64, True),
        ("membar.gl;", 64, True),
        ("", 1, True),
        ("bar.warp.sync -1;", 1, False),
    ],
)
def test_shared_memory(races, order, distance, raced):
    said, _ = races(neighbour(order, distance), grid=2, block=128)
    assert bool(said) == raced
    assert all("race in k: the" in line and "of shared memory" in line for line in said)


@pytest.mark.parametrize(("meet", "raced"), [("bar.warp.sync -1;", False), ("", True)])
def test_lanes_that_meet_at_two_places(races, meet, raced):
    """What each half writes before its own barrier the other reads behind its own."""
    apart = f"""setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;
    {meet} bra READ;
    LOW: {meet}
    READ:"""
    said, _ = races(neighbour(apart, 16), grid=1, block=32)
    assert bool(said) == raced


@pytest.mark.parametrize(("fence", "raced"), [("", True), ("membar.gl;", False), ("fence.sc.gpu;", False)])
def test_what_a_flag_hands_on(races, fence, raced):
    said, made = races(kernel(HANDED_ON.replace("FENCE", fence), ["p0"]), grid=2, block=1)
    assert made[1] == 7
    assert bool(said) == raced
    if raced:
        assert "the write of line" in said[0]
        assert "the read of line" in said[0]
        assert "at byte 8 of allocation 0" in said[0]


@pytest.mark.parametrize(
    ("access", "raced"),
    [
        ("st.global.u32 [%l0], %i;", True),
        ("red.global.add.u32 [%l0], %i;", False),
        ("st.volatile.global.u32 [%l0], %i;", False),
        ("ld.global.u32 %r1, [%l0];", False),
        ("mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; st.global.u32 [%l0], %i;", False),
        ("cvt.u64.u32 %l1, %i; add.u64 %l0, %l0, %l1; st.global.u8 [%l0], %i;", False),
    ],
)
def test_blocks_at_one_place(races, access, raced):
    said, _ = races(kernel("ld.param.u64 %l0, [p0];\n" + access, ["p0"]), grid=4, block=32)
    assert bool(said) == raced
