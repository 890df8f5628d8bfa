"""The schedule is data: what it chooses depends on its words alone, and what no order can change stays the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from virtual_device import kernel

WORDS = ["serial", "reverse", "random:0", "random:1", "random:18446744073709551", "adversary:0", "adversary:1"]
WORDS += ["exchange", "lanes", "atomics:0", "atomics:1", "pct:0,1", "pct:1,3"]
ORDER = kernel(
    """ld.param.u64 %l0, [p0]; atom.global.add.u32 %r1, [%l0], 1; mul.wide.u32 %l1, %r1, 4; add.u64 %l0, %l0, %l1;
    st.global.u32 [%l0+4], %i;""",
    ["p0"],
)
SUM = kernel(
    """ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mul.wide.u32 %l2, %i, 4; add.u64 %l1, %l1, %l2;
    ld.global.f32 %r1, [%l1]; atom.global.add.f32 %r2, [%l0], %r1;""",
    ["p0", "p1"],
)
RACE = kernel(
    """ld.param.u64 %l0, [p0]; ld.volatile.global.u32 %r1, [%l0]; add.u32 %r1, %r1, 1;
    st.volatile.global.u32 [%l0], %r1;""",
    ["p0"],
)


def came(device, schedule, grid=8, block=64):
    code, (made,), _ = device.run_in_child(
        ORDER, [np.zeros(grid * block + 1, np.uint32)], schedule, grid=grid, block=block
    )
    assert (code, made[0]) == (0, grid * block)
    return made[1:].tolist()


@pytest.mark.parametrize("schedule", WORDS)
def test_the_same_words_give_the_same_order(device, schedule):
    first = came(device, schedule)
    assert sorted(first) == list(range(512))
    assert came(device, schedule) == first


def test_other_words_give_other_orders(device):
    orders = {tuple(came(device, one)) for one in WORDS}
    assert len(orders) == len(WORDS)


@pytest.fixture
def schedule(device):
    """Sets that of this process."""
    yield lambda words: device.cuda.vgpu_set_schedule(words.encode())
    device.cuda.vgpu_set_schedule(b"serial")


def test_a_choice_among_atomics_exchanges_two_and_no_others(device, schedule):
    """Neighbours at an address: of a warp, of two warps, of two blocks."""
    serial, exchanged = list(range(192)), set()
    for choice in serial:
        assert schedule(f"atomics:5@0:{choice}") == 0
        code, (made,) = device.run(ORDER, [np.zeros(193, np.uint32)], grid=3, block=64)
        assert code == 0
        if (order := made[1:].tolist()) != serial:
            exchanged.add(choice)
            assert order == [*serial[:choice], choice + 1, choice, *serial[choice + 2 :]]
    assert 64 < len(exchanged) < 128  # it tosses a coin
    assert {k % 64 for k in exchanged} >= {31, 63}  # the last of a warp, the last of a block


def test_whoever_is_waited_for_comes(device, schedule):
    """At a barrier, at the end of the grid, where nobody else comes to that address."""
    text = ORDER.replace("mul.wide", "bar.sync 0; mul.wide", 1)
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (made,) = device.run(text, [np.zeros(4 * 96 + 1, np.uint32)], grid=4, block=96)
        assert (code, sorted(made[1:])) == (0, list(range(4 * 96)))


def test_serial_is_the_order_of_numbers_and_reverse_its_mirror(device):
    assert came(device, "serial") == list(range(512))
    assert came(device, "reverse") == list(range(511, -1, -1))


@pytest.mark.parametrize("schedule", WORDS)
def test_integers_do_not_depend_on_it(device, schedule):
    text = SUM.replace("atom.global.add.f32", "atom.global.add.u32")
    values = np.random.default_rng(0).integers(0, 1 << 32, 2048, np.uint64).astype(np.uint32)
    code, (made, _), _ = device.run_in_child(text, [np.zeros(1, np.uint32), values], schedule, grid=16, block=128)
    assert (code, made[0]) == (0, values.sum(dtype=np.uint32))


def test_sums_of_floats_take_many_values(device):
    values = np.random.default_rng(0).standard_normal(2048).astype(np.float32).view(np.uint32)
    found = set()
    for seed in range(6):
        for kind in ("random", "adversary"):
            code, (made, _), _ = device.run_in_child(
                SUM, [np.zeros(1, np.uint32), values], f"{kind}:{seed}", grid=16, block=128
            )
            assert code == 0
            found.add(int(made[0]))
    assert len(found) > 6


def test_an_adversary_shows_a_lost_update(device):
    """A counter without atomics is right in serial order, and wrong where another block comes between."""
    lost = {}
    for schedule in ("serial", "adversary:1", "random:1"):
        code, (made,), _ = device.run_in_child(RACE, [np.zeros(1, np.uint32)], schedule, grid=64, block=1)
        assert code == 0
        lost[schedule] = 64 - int(made[0])
    assert lost["serial"] == 0
    assert lost["adversary:1"] > 0
    assert lost["random:1"] > 0


def test_a_priority_changes_only_at_as_many_places_as_the_depth_says(device, schedule):
    """A counter without atomics loses an update only where another warp comes between: never at depth 1."""
    lost, last = {1: 0, 2: 0}, set()
    for depth in lost:
        for seed in range(64):
            assert schedule(f"pct:{seed},{depth}") == 0
            code, (made,) = device.run(RACE, [np.zeros(1, np.uint32)], grid=8, block=1)
            assert code == 0
            assert made[0] == 8 or depth == 2
            lost[depth] += 8 - int(made[0])
    assert lost[2] > 0
    for seed in range(64):
        assert schedule(f"pct:{seed},1") == 0
        code, (made,) = device.run(ORDER, [np.zeros(5, np.uint32)], grid=4, block=1)
        assert code == 0
        last.add(tuple(made[1:]))
    assert len(last) > 12  # of 24 orders of four warps


def test_priorities_order_the_warps_of_a_block(device, schedule):
    orders = set()
    for seed in range(16):
        assert schedule(f"pct:{seed},1") == 0
        code, (made,) = device.run(ORDER, [np.zeros(129, np.uint32)], grid=1, block=128)
        assert code == 0
        warps = (made[1:] // 32).reshape(4, 32)
        assert (warps == warps[:, :1]).all()  # each runs to its end
        orders.add(tuple(warps[:, 0]))
    assert len(orders) > 4


@pytest.mark.parametrize(
    "words",
    ["sequential", "random", "random:", "random:x", "random:-1", "serial:1", "adversary", "random:1 ", "atomics"],
)
def test_other_words_are_no_schedule(device, words):
    with pytest.raises(AssertionError, match="is no schedule"):
        device.run_in_child(ORDER, [np.zeros(65, np.uint32)], words, grid=1, block=64)


def test_the_grammar_of_schedules(device):
    """tests/host/engines/test_vgpu.py holds the host's grammar against the same table."""
    table = json.loads(Path(__file__).with_name("schedules.json").read_text("utf-8"))
    known = {one: device.cuda.vgpu_set_schedule(one.encode()) == 0 for kind in table.values() for one in kind}
    device.cuda.vgpu_set_schedule(b"serial")
    assert known == {**dict.fromkeys(table["good"], True), **dict.fromkeys(table["bad"], False)}


LATE = {  # what orders a thread's addition before what follows; without any it may come as late as the launch's end
    "own load": "ld.global.u32 %r2, [%l0];",
    "own volatile load": "ld.volatile.global.u32 %r2, [%l0];",
    "own store": "st.global.u32 [%l0], 7; ld.global.u32 %r2, [%l0];",
    "own addition": "atom.global.add.u32 %r2, [%l0], 0;",
    "part of it": "ld.global.u8 %r2, [%l0];",
    "as part of a vector": "ld.global.v2.u32 {%r3, %r2}, [%l0+-4];",
}


@pytest.mark.parametrize("then", LATE.values(), ids=LATE)
def test_a_thread_sees_its_own_addition(device, schedule, then):
    text = kernel(
        f"""ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1; add.u64 %l0, %l0, 4;
        red.global.add.u32 [%l0], 5; {then} st.global.u32 [%l0+-4], %r2;""",
        ["p0"],
    )
    for seed in range(4):
        assert schedule(f"atomics:{seed}") == 0
        code, (made,) = device.run(text, [np.zeros(256, np.uint32)], grid=2, block=64)
        assert (code, set(made.tolist())) == (0, {7 if "st.global" in then else 5})


@pytest.mark.parametrize("meet", ["bar.sync 0;", "barrier.sync 0;", "bar.warp.sync -1;"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_who_has_met_sees_the_additions(device, schedule, meet, space):
    """A warp whose lanes add to their neighbors' places, and read their own."""
    place = "shl.b32 %r2, %lane, 2; mov.u32 %r3, box; add.u32 %r2, %r2, %r3;" if space == "shared" else ""
    neighbor = "add.u32 %r4, %lane, 1; and.b32 %r4, %r4, 31; shl.b32 %r4, %r4, 2;"
    if space == "shared":
        body = f".shared .b32 box[32]; {place} {neighbor} add.u32 %r4, %r4, %r3; red.shared.add.u32 [%r4], 3; {meet} "
        body += "ld.shared.u32 %r5, [%r2];"
    else:
        body = f"{neighbor} cvt.u64.u32 %l2, %r4; add.u64 %l2, %l0, %l2; mul.wide.u32 %l3, %lane, 4; "
        body += f"add.u64 %l3, %l0, %l3; red.global.add.u32 [%l2], 3; {meet} ld.global.u32 %r5, [%l3];"
    text = kernel(
        f"""ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; .reg .b32 %lane; mov.u32 %lane, %laneid; {body}
        mul.wide.u32 %l4, %i, 4; add.u64 %l1, %l1, %l4; st.global.u32 [%l1], %r5;""",
        ["p0", "p1"],
    )
    for seed in range(4):
        assert schedule(f"atomics:{seed}") == 0
        code, (_, made) = device.run(text, [np.zeros(32, np.uint32), np.zeros(32, np.uint32)], grid=1, block=32)
        assert (code, set(made.tolist())) == (0, {3})


@pytest.mark.parametrize("fence", ["membar.gl;", "fence.acq_rel.gpu;", ""])
def test_an_addition_comes_before_what_a_fence_or_a_strong_store_publishes(device, schedule, fence):
    text = kernel(
        f"""ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r1, 0;
        @%p0 bra WAIT; red.global.add.u32 [%l0], 5; {fence} st.volatile.global.u32 [%l1], 1; ret;
        WAIT: ld.volatile.global.u32 %r2, [%l1]; setp.eq.u32 %p0, %r2, 0; @%p0 bra WAIT; membar.gl;
        ld.global.u32 %r3, [%l0]; st.global.u32 [%l1+4], %r3;""",
        ["p0", "p1"],
    )
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (_, made) = device.run(text, [np.zeros(1, np.uint32), np.zeros(2, np.uint32)], grid=2, block=1)
        assert (code, made[1]) == (0, 5)


def test_an_addition_that_somebody_waits_for_comes(device, schedule):
    """Nothing orders it, and its thread is over: the other block's threads turn until it is there."""
    text = kernel(
        """ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0;
        @%p0 bra DONE; WAIT: ld.volatile.global.u32 %r2, [%l0]; setp.lt.u32 %p0, %r2, 128; @%p0 bra WAIT; DONE:""",
        ["p0"],
    )
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (made,) = device.run(text, [np.zeros(1, np.uint32)], grid=2, block=64)
        assert (code, made[0]) == (0, 128)


def test_sums_nobody_reads_meanwhile_change_their_order_too(device, schedule):
    """Neighbors at the address, of a warp and of two blocks, and without waiting: as many instructions as in serial."""
    text = SUM.replace("atom.global.add.f32 %r2,", "red.global.add.f32")
    values = np.zeros(192, np.float32)
    found = {}
    for at in (5, 63, 127):  # in a warp; the last of a block
        values[:] = 0
        values[at - 1], values[at], values[at + 1] = 1e8, -1e8, 1
        for choice in ("serial", f"atomics:5@0:{at}", f"atomics:6@0:{at}", f"atomics:7@0:{at}", f"atomics:8@0:{at}"):
            assert schedule(choice) == 0
            before = device.cuda.vgpu_instructions()
            code, (made, _) = device.run(text, [np.zeros(1, np.uint32), values.view(np.uint32)], grid=3, block=64)
            assert code == 0
            found.setdefault(at, set()).add(float(made.view(np.float32)[0]))
            found.setdefault("instructions", set()).add(device.cuda.vgpu_instructions() - before)
    instructions = found.pop("instructions")
    assert found == {5: {0.0, 1.0}, 63: {0.0, 1.0}, 127: {0.0, 1.0}}
    assert len(instructions) == 1
