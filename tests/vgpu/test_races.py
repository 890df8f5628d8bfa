"""VGPU_CHECK=racecheck finds planted races, and none if a barrier, a fence or an atomic orders the accesses."""

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

NEIGHBOUR = """mov.u64 %l0, word; mul.wide.u32 %l1, %t, 4; add.u64 %l1, %l0, %l1; st.shared.u32 [%l1], %t;
ORDER
xor.b32 %r1, %t, DISTANCE; mul.wide.u32 %l2, %r1, 4; add.u64 %l2, %l0, %l2; ld.shared.u32 %r2, [%l2];"""
SHARED = ".shared .align 4 .b8 word[512];"
# Block 0 writes and raises a flag; block 1 waits for the flag and reads.
HANDED_ON = """ld.param.u64 %l0, [p0]; mov.u32 %r0, %ctaid.x; setp.eq.u32 %p1, %r0, 1; @%p1 bra WAIT;
st.global.u32 [%l0+8], 7; FENCE st.volatile.global.u32 [%l0], 1; exit;
WAIT: ld.volatile.global.u32 %r1, [%l0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT; FENCE
ld.global.u32 %r2, [%l0+8]; st.global.u32 [%l0+4], %r2;"""


@pytest.fixture(params=["serial", "random:1", "adversary:1"])  # schedules
def races_of(device, request, monkeypatch):
    """Return a function that runs a kernel and returns the reported races and the array."""
    monkeypatch.setenv("VGPU_CHECK", "racecheck")

    def run(text, **options):
        code, (values,), stderr = device.run_in_child(text, [np.zeros(128, np.uint32)], request.param, **options)
        assert code == 0, stderr
        return [line for line in stderr.splitlines() if "race" in line], values

    return run


def neighbour(order, distance):
    """Return a kernel whose threads read a neighbor's word after ORDER."""
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
def test_races_in_shared_memory(races_of, order, distance, raced):
    lines, _ = races_of(neighbour(order, distance), grid=2, block=128)
    assert bool(lines) == raced
    assert all("race in k: the" in line and "of shared memory" in line for line in lines)


@pytest.mark.parametrize(("meet", "raced"), [("bar.warp.sync -1;", False), ("", True)])
def test_warp_barriers_of_two_halves(races_of, meet, raced):
    """Each half of a warp reads, behind its own barrier, what the other half wrote before its barrier."""
    two_barriers = f"""setp.lt.u32 %p1, %t, 16; @%p1 bra LOW;
    {meet} bra READ;
    LOW: {meet}
    READ:"""
    lines, _ = races_of(neighbour(two_barriers, 16), grid=1, block=32)
    assert bool(lines) == raced


@pytest.mark.parametrize(("fence", "raced"), [("", True), ("membar.gl;", False), ("fence.sc.gpu;", False)])
def test_a_flag_orders_accesses_only_with_a_fence(races_of, fence, raced):
    lines, values = races_of(kernel(HANDED_ON.replace("FENCE", fence), ["p0"]), grid=2, block=1)
    assert values[1] == 7
    assert bool(lines) == raced
    if raced:
        assert "the write of line" in lines[0]
        assert "the read of line" in lines[0]
        assert "at byte 8 of allocation 0" in lines[0]


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
def test_races_between_blocks(races_of, access, raced):
    lines, _ = races_of(kernel("ld.param.u64 %l0, [p0];\n" + access, ["p0"]), grid=4, block=32)
    assert bool(lines) == raced


# Block 0 writes and sends a message; block 1 waits for the message and reads.
MESSAGE = """ld.param.u64 %l0, [p0]; mov.u32 %r0, %ctaid.x; setp.eq.u32 %p1, %r0, 1; @%p1 bra WAIT;
st.global.u32 [%l0+8], 7; SEND; exit;
WAIT: RECEIVE; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;
ld.global.u32 %r2, [%l0+8]; st.global.u32 [%l0+4], %r2;"""
SENDS = {
    "st.release.gpu.global.u32 [%l0], 1": True,
    "st.release.sys.u32 [%l0], 1": True,
    "red.release.gpu.global.add.u32 [%l0], 1": True,
    "atom.release.gpu.global.exch.b32 %r3, [%l0], 1": True,
    "atom.acq_rel.gpu.global.add.u32 %r3, [%l0], 1": True,
    "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%l0], 1": True,
    "fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%l0], 1": True,
    "st.relaxed.gpu.global.u32 [%l0], 1": False,
    "red.global.add.u32 [%l0], 1": False,
    "atom.acquire.gpu.global.add.u32 %r3, [%l0], 1": False,
    "st.relaxed.gpu.global.u32 [%l0], 1; fence.acq_rel.gpu": False,
}
RECEIVES = {
    "ld.acquire.gpu.global.u32 %r1, [%l0]": True,
    "ld.acquire.sys.u32 %r1, [%l0]": True,
    "atom.acquire.gpu.global.or.b32 %r1, [%l0], 0": True,
    "atom.acq_rel.gpu.global.cas.b32 %r1, [%l0], 1, 1": True,
    "ld.relaxed.gpu.global.u32 %r1, [%l0]; fence.acq_rel.gpu": True,
    "ld.volatile.global.u32 %r1, [%l0]; membar.gl": True,
    "ld.relaxed.gpu.global.u32 %r1, [%l0]": False,
    "atom.release.gpu.global.or.b32 %r1, [%l0], 0": False,
}
PAIRS = [(send, next(iter(RECEIVES)), ordered) for send, ordered in SENDS.items()]
PAIRS += [(next(iter(SENDS)), receive, ordered) for receive, ordered in RECEIVES.items()]


@pytest.mark.parametrize(("send", "receive", "ordered"), PAIRS)
def test_a_message_needs_release_and_acquire(races_of, send, receive, ordered):
    lines, values = races_of(kernel(MESSAGE.replace("SEND", send).replace("RECEIVE", receive), ["p0"]), grid=2, block=1)
    assert values[1] == 7
    assert len(lines) == (0 if ordered else 1)
    assert all("the write of line" in line and "at byte 8 of allocation 0" in line for line in lines)


CHAIN = """ld.param.u64 %l0, [p0]; mov.u32 %r0, %ctaid.x;
setp.eq.u32 %p1, %r0, 1; @%p1 bra SECOND; setp.eq.u32 %p1, %r0, 2; @%p1 bra THIRD;
st.global.u32 [%l0+8], 7; st.release.gpu.global.u32 [%l0], 1; exit;
SECOND: ld.acquire.gpu.global.u32 %r1, [%l0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SECOND;
st.HOW.gpu.global.u32 [%l0+12], 1; exit;
THIRD: ld.acquire.gpu.global.u32 %r1, [%l0+12]; setp.eq.u32 %p2, %r1, 0; @%p2 bra THIRD;
ld.global.u32 %r2, [%l0+8]; st.global.u32 [%l0+4], %r2;"""


@pytest.mark.parametrize(("how", "raced"), [("release", False), ("relaxed", True)])
def test_order_is_transitive(races_of, how, raced):
    lines, _ = races_of(kernel(CHAIN.replace("HOW", how), ["p0"]), grid=3, block=1)
    assert bool(lines) == raced


LOCKED = """ld.param.u64 %l0, [p0];
TRY: atom.ACQUIRE.gpu.global.cas.b32 %r1, [%l0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
ld.global.u32 %r2, [%l0+8]; add.u32 %r2, %r2, 1; st.global.u32 [%l0+8], %r2;
st.RELEASE.gpu.global.u32 [%l0], 0;"""


@pytest.mark.parametrize(
    ("acquire", "release", "raced"),
    [("acquire", "release", False), ("relaxed", "release", True), ("acquire", "relaxed", True)],
)
def test_a_lock_orders_its_critical_sections(races_of, acquire, release, raced):
    text = kernel(LOCKED.replace("ACQUIRE", acquire).replace("RELEASE", release), ["p0"])
    lines, values = races_of(text, grid=8, block=1)
    assert values[2] == 8
    assert bool(lines) == raced


# Every thread writes its part; the block that comes last to the counter adds up everybody's.
LAST_BLOCK = """ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l1, %l0, %l1;
st.global.u32 [%l1+16], %i; FENCE MEET setp.ne.u32 %p1, %t, 0; @%p1 bra ASKED;
atom.global.inc.u32 %r1, [%l0], 1; st.shared.u32 [word], %r1;
ASKED: MEET ld.shared.u32 %r2, [word]; setp.ne.u32 %p2, %r2, 1; @%p2 exit; AFTER
mov.u32 %r3, %ctaid.x; xor.b32 %r3, %r3, 1;
mad.lo.u32 %r3, %r3, DISTANCE, %t; mul.wide.u32 %l2, %r3, 4; add.u64 %l2, %l0, %l2; ld.global.u32 %r4, [%l2+16];"""


@pytest.mark.parametrize(
    ("fence", "raced"), [("membar.gl;", False), ("fence.acq_rel.gpu;", False), ("", True), ("@%p7 membar.gl;", True)]
)
@pytest.mark.parametrize(("threads", "meet"), [(16, "bar.warp.sync 65535;"), (48, "bar.sync 0;")])
def test_the_last_block_sees_what_all_others_fenced(races_of, threads, meet, fence, raced):
    """Each thread's fence precedes its barrier, and another thread of the block publishes the counter."""
    text = LAST_BLOCK.replace("FENCE", fence).replace("MEET", meet).replace("AFTER", "membar.gl;")
    if "%p7" in fence:  # a fence of one thread, which is not the thread that increments the counter
        text = "setp.eq.u32 %p7, %t, 1; " + text
    lines, _ = races_of(kernel(text.replace("DISTANCE", str(threads)), ["p0"], head=SHARED), grid=2, block=threads)
    assert bool(lines) == raced
