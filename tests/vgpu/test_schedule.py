"""Schedules are data: a schedule repeats its order, and results that no order changes are the same in all of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

# KIND:SEED (pct:SEED,DEPTH); behind it, @LAUNCH:CHOICE keeps that choice alone, and all others are those of `serial`.
# Under atomics:SEED, a choice defers an atomic until another one at its address has executed.
SCHEDULES = ["serial", "reverse", "random:0", "random:1", "random:18446744073709551", "adversary:0", "adversary:1"]
SCHEDULES += ["exchange", "lanes", "atomics:0", "atomics:1", "pct:0,1", "pct:1,3"]
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


def execution_order(device, schedule, grid=8, block=64):
    """Return the indices of the threads in the order in which they executed the kernel ORDER."""
    code, (values,), _ = device.run_in_child(
        ORDER, [np.zeros(grid * block + 1, np.uint32)], schedule, grid=grid, block=block
    )
    assert (code, values[0]) == (0, grid * block)
    return values[1:].tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_equal_schedules_give_equal_orders(device, schedule):
    order = execution_order(device, schedule)
    assert sorted(order) == list(range(512))
    assert execution_order(device, schedule) == order


def test_different_schedules_give_different_orders(device):
    orders = {tuple(execution_order(device, name)) for name in SCHEDULES}
    assert len(orders) == len(SCHEDULES)


@pytest.fixture
def schedule(device):
    """Yield a function that sets the schedule of this process."""
    yield lambda name: device.cuda.vgpu_set_schedule(name.encode())
    device.cuda.vgpu_set_schedule(b"serial")


def test_a_choice_among_atomics_exchanges_two_and_no_others(device, schedule):
    """A choice exchanges two neighbors at an address: of a warp, of two warps, or of two blocks."""
    serial, exchanged = list(range(192)), set()
    for choice in serial:
        assert schedule(f"atomics:5@0:{choice}") == 0
        code, (values,) = device.run(ORDER, [np.zeros(193, np.uint32)], grid=3, block=64)
        assert code == 0
        if (order := values[1:].tolist()) != serial:
            exchanged.add(choice)
            assert order == [*serial[:choice], choice + 1, choice, *serial[choice + 2 :]]
    assert 64 < len(exchanged) < 128  # each choice tosses a coin
    assert {k % 64 for k in exchanged} >= {31, 63}  # the last of a warp, the last of a block


BINS = 5  # some neighbors of a bin are in one warp, some are not


def histogram(space):
    """Return a kernel in which each thread stores the count that its bin had, in memory of the grid or of its block."""
    declaration = f".shared .b32 bins[{BINS}];" if space == "shared" else ""
    base = "mov.u32 %r1, bins; cvt.u64.u32 %l1, %r1;" if space == "shared" else "mov.u64 %l1, %l0;"
    clear = f"setp.lt.u32 %p0, %t, {BINS}; @%p0 st.shared.u32 [%l2], 0; bar.sync 0;" if space == "shared" else ""
    return kernel(
        f"""{declaration} ld.param.u64 %l0, [p0]; {base} mul.wide.u32 %l2, %t, 4; add.u64 %l2, %l1, %l2; {clear}
        rem.u32 %r2, %i, {BINS}; mul.wide.u32 %l2, %r2, 4; add.u64 %l1, %l1, %l2; atom.{space}.add.u32 %r3, [%l1], 1;
        mul.wide.u32 %l2, %i, 4; add.u64 %l0, %l0, %l2; st.global.u32 [%l0+{4 * BINS}], %r3;""",
        ["p0"],
    )


@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_choice_among_atomics_exchanges_two_of_one_address(device, schedule, space):
    """Atomics at other addresses keep their counts; all choices together give each thread of a bin another count."""
    threads, scope = 160, 160 if space == "global" else 80
    counts = [thread % scope // BINS for thread in range(threads)]
    exchanged = set()
    for choice in range(threads):
        assert schedule(f"atomics:5@0:{choice}") == 0
        code, (values,) = device.run(histogram(space), [np.zeros(threads + BINS, np.uint32)], grid=2, block=80)
        assert code == 0
        expected = [*counts]
        if (found := values[BINS:].tolist()) != counts:
            exchanged.add(choice)
            expected[choice], expected[choice + BINS] = counts[choice + BINS], counts[choice]
        assert found == expected
    assert threads // 3 < len(exchanged) < 2 * threads // 3
    assert exchanged & {78, 79} if space == "global" else not exchanged & {75, 76, 77, 78, 79}  # between blocks
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (values,) = device.run(histogram(space), [np.zeros(threads + BINS, np.uint32)], grid=2, block=80)
        assert code == 0
        for begin in range(0, threads, scope):
            for first in range(BINS):
                found = values[BINS + begin + first : BINS + begin + scope : BINS].tolist()
                assert sorted(found) == list(range(scope // BINS)) != found


def test_deferred_atomics_of_two_branches_execute_apart(device, schedule):
    """Nothing overtakes them, so those of a warp are released together, and are different instructions."""
    text = kernel(
        """ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; and.b32 %r1, %i, 1;
        setp.eq.u32 %p0, %r1, 0; @%p0 bra EVEN; atom.global.add.u32 %r2, [%l0], 5; bra DONE;
        EVEN: atom.global.exch.b32 %r2, [%l0], 7; DONE: st.global.u32 [%l0+256], %r2;""",
        ["p0"],
    )
    values = np.concatenate([np.arange(100, 164), np.zeros(64)]).astype(np.uint32)
    expected = [7 if k % 2 == 0 else 105 + k for k in range(64)] + list(range(100, 164))
    for seed in range(16):
        assert schedule(f"atomics:{seed}") == 0
        code, (found,) = device.run(text, [values], grid=2, block=32)
        assert (code, found.tolist()) == (0, expected)


def test_a_threads_own_deferred_atomics_stay_in_order(device, schedule):
    text = kernel(
        """ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1;
        red.global.and.b32 [%l0], 0; red.global.or.b32 [%l0], 5; red.global.add.u32 [%l0], 5;""",
        ["p0"],
    )
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (found,) = device.run(text, [np.full(64, 3, np.uint32)], grid=2, block=32)
        assert (code, set(found.tolist())) == (0, {10})


def test_a_deferred_atomic_that_is_waited_for_executes(device, schedule):
    """A deferred atomic executes before a barrier, the end of the grid, or if no other atomic uses the address."""
    text = ORDER.replace("mul.wide", "bar.sync 0; mul.wide", 1)
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (values,) = device.run(text, [np.zeros(4 * 96 + 1, np.uint32)], grid=4, block=96)
        assert (code, sorted(values[1:])) == (0, list(range(4 * 96)))


def test_serial_is_the_order_of_numbers_and_reverse_its_mirror(device):
    assert execution_order(device, "serial") == list(range(512))
    assert execution_order(device, "reverse") == list(range(511, -1, -1))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_integer_sums_do_not_depend_on_the_schedule(device, schedule):
    text = SUM.replace("atom.global.add.f32", "atom.global.add.u32")
    values = np.random.default_rng(0).integers(0, 1 << 32, 2048, np.uint64).astype(np.uint32)
    code, (made, _), _ = device.run_in_child(text, [np.zeros(1, np.uint32), values], schedule, grid=16, block=128)
    assert (code, made[0]) == (0, values.sum(dtype=np.uint32))


def test_sums_of_floats_take_many_values(device):
    values = np.random.default_rng(0).standard_normal(2048).astype(np.float32).view(np.uint32)
    sums = set()
    for seed in range(6):
        for kind in ("random", "adversary"):
            code, (made, _), _ = device.run_in_child(
                SUM, [np.zeros(1, np.uint32), values], f"{kind}:{seed}", grid=16, block=128
            )
            assert code == 0
            sums.add(int(made[0]))
    assert len(sums) > 6


def test_an_adversary_schedule_shows_a_lost_update(device):
    """A counter without atomics is right in serial order, and wrong if another block runs in between."""
    lost_updates = {}
    for schedule in ("serial", "adversary:1", "random:1"):
        code, (values,), _ = device.run_in_child(RACE, [np.zeros(1, np.uint32)], schedule, grid=64, block=1)
        assert code == 0
        lost_updates[schedule] = 64 - int(values[0])
    assert lost_updates["serial"] == 0
    assert lost_updates["adversary:1"] > 0
    assert lost_updates["random:1"] > 0


def test_pct_changes_priorities_as_often_as_its_depth(device, schedule):
    """A counter without atomics loses an update only if another warp runs in between: never at depth 1."""
    lost_updates, orders = {1: 0, 2: 0}, set()
    for depth in lost_updates:
        for seed in range(64):
            assert schedule(f"pct:{seed},{depth}") == 0
            code, (values,) = device.run(RACE, [np.zeros(1, np.uint32)], grid=8, block=1)
            assert code == 0
            assert values[0] == 8 or depth == 2
            lost_updates[depth] += 8 - int(values[0])
    assert lost_updates[2] > 0
    for seed in range(64):
        assert schedule(f"pct:{seed},1") == 0
        code, (values,) = device.run(ORDER, [np.zeros(5, np.uint32)], grid=4, block=1)
        assert code == 0
        orders.add(tuple(values[1:]))
    assert len(orders) > 12  # of 24 orders of four warps


def test_priorities_order_the_warps_of_a_block(device, schedule):
    orders = set()
    for seed in range(16):
        assert schedule(f"pct:{seed},1") == 0
        code, (values,) = device.run(ORDER, [np.zeros(129, np.uint32)], grid=1, block=128)
        assert code == 0
        warps = (values[1:] // 32).reshape(4, 32)
        assert (warps == warps[:, :1]).all()  # each warp runs to its end
        orders.add(tuple(warps[:, 0]))
    assert len(orders) > 4


@pytest.mark.parametrize(
    "words",
    ["sequential", "random", "random:", "random:x", "random:-1", "serial:1", "adversary", "random:1 ", "atomics"],
)
def test_invalid_schedules_are_refused(device, words):
    with pytest.raises(AssertionError, match="is no schedule"):
        device.run_in_child(ORDER, [np.zeros(65, np.uint32)], words, grid=1, block=64)


def test_the_grammar_of_schedules(device):
    """tests/host/engines/test_vgpu.py checks the host's grammar with the same table."""
    table = json.loads(Path(__file__).with_name("schedules.json").read_text("utf-8"))
    is_accepted = {name: device.cuda.vgpu_set_schedule(name.encode()) == 0 for kind in table.values() for name in kind}
    device.cuda.vgpu_set_schedule(b"serial")
    assert is_accepted == {**dict.fromkeys(table["good"], True), **dict.fromkeys(table["bad"], False)}


# Statements of the same thread behind a deferred addition, which must see it.
LATE = {  # accesses before which a thread's own addition must execute; it may be deferred to the launch's end else
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
        code, (values,) = device.run(text, [np.zeros(256, np.uint32)], grid=2, block=64)
        assert (code, set(values.tolist())) == (0, {7 if "st.global" in then else 5})


@pytest.mark.parametrize("meet", ["bar.sync 0;", "barrier.sync 0;", "bar.warp.sync -1;"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_additions_before_a_barrier_are_visible_behind_it(device, schedule, meet, space):
    """Each lane adds to its neighbor's element, and reads its own behind a barrier."""
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
        code, (_, values) = device.run(text, [np.zeros(32, np.uint32), np.zeros(32, np.uint32)], grid=1, block=32)
        assert (code, set(values.tolist())) == (0, {3})


@pytest.mark.parametrize("fence", ["membar.gl;", "fence.acq_rel.gpu;", ""])
def test_a_deferred_addition_executes_before_a_fence_or_strong_store(device, schedule, fence):
    text = kernel(
        f"""ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r1, 0;
        @%p0 bra WAIT; red.global.add.u32 [%l0], 5; {fence} st.volatile.global.u32 [%l1], 1; ret;
        WAIT: ld.volatile.global.u32 %r2, [%l1]; setp.eq.u32 %p0, %r2, 0; @%p0 bra WAIT; membar.gl;
        ld.global.u32 %r3, [%l0]; st.global.u32 [%l1+4], %r3;""",
        ["p0", "p1"],
    )
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (_, values) = device.run(text, [np.zeros(1, np.uint32), np.zeros(2, np.uint32)], grid=2, block=1)
        assert (code, values[1]) == (0, 5)


def test_a_deferred_addition_that_is_spun_on_executes(device, schedule):
    """Nothing orders the addition, and its thread has ended, but the other block's threads spin until they see it."""
    text = kernel(
        """ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0;
        @%p0 bra DONE; WAIT: ld.volatile.global.u32 %r2, [%l0]; setp.lt.u32 %p0, %r2, 128; @%p0 bra WAIT; DONE:""",
        ["p0"],
    )
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (values,) = device.run(text, [np.zeros(1, np.uint32)], grid=2, block=64)
        assert (code, values[0]) == (0, 128)


def test_unread_sums_change_their_order(device, schedule):
    """Neighbors at an address change places, in a warp and between blocks, without additional instructions."""
    text = SUM.replace("atom.global.add.f32 %r2,", "red.global.add.f32")
    values = np.zeros(192, np.float32)
    sums = {}
    for thread in (5, 63, 127):  # a thread within a warp, and the last ones of blocks
        values[:] = 0
        values[thread - 1], values[thread], values[thread + 1] = 1e8, -1e8, 1
        for choice in (
            "serial",
            f"atomics:5@0:{thread}",
            f"atomics:6@0:{thread}",
            f"atomics:7@0:{thread}",
            f"atomics:8@0:{thread}",
        ):
            assert schedule(choice) == 0
            instructions_before = device.cuda.vgpu_instructions()
            code, (made, _) = device.run(text, [np.zeros(1, np.uint32), values.view(np.uint32)], grid=3, block=64)
            assert code == 0
            sums.setdefault(thread, set()).add(float(made.view(np.float32)[0]))
            sums.setdefault("instructions", set()).add(device.cuda.vgpu_instructions() - instructions_before)
    instructions = sums.pop("instructions")
    assert sums == {5: {0.0, 1.0}, 63: {0.0, 1.0}, 127: {0.0, 1.0}}
    assert len(instructions) == 1


@pytest.mark.parametrize("seed", range(4))
def test_an_old_value_that_is_unused_suspends_no_thread(device, schedule, seed):
    """`nvcc` writes atom for each atomicAdd(); its results are those of red under the same choices."""
    body = """ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mul.wide.u32 %l2, %i, 4; add.u64 %l1, %l1, %l2;
    ld.global.f32 %r1, [%l1]; OPERATION"""
    values, results = np.random.default_rng(1).random(256, np.float32), []
    for operation in ("atom.global.add.f32 %r2, [%l0], %r1;", "red.global.add.f32 [%l0], %r1;"):
        text = kernel(body.replace("OPERATION", operation), ["p0", "p1"])
        assert schedule(f"atomics:{seed}") == 0
        code, (total, _) = device.run(text, [np.zeros(1, np.float32), values], grid=2, block=128)
        assert code == 0
        results.append(total.tobytes())
    assert results[0] == results[1]


ROUNDS = 8
LOOP = kernel(
    f"""ld.param.u64 %l0, [p0]; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; and.b32 %r4, %i, 7;
    mul.wide.u32 %l2, %r4, 4;
    add.u64 %l1, %l0, %l2;
    NEXT: atom.global.add.u32 %r5, [%l1], 1; activemask.b32 %r6; setp.eq.s32 %p0, %r6, -1; selp.u32 %r7, 1, 0, %p0;
    add.u32 %r2, %r2, %r7; shl.b32 %r5, %r5, %r1; xor.b32 %r3, %r3, %r5; add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, {ROUNDS}; @%p1 bra NEXT;
    mul.wide.u32 %l2, %i, 8; add.u64 %l0, %l0, %l2; st.global.v2.u32 [%l0+32], {{%r2, %r3}};""",
    ["p0"],
)


def run_loop(device):
    """Run 128 threads; return in how many rounds all lanes were active behind the atomic, and what the values give."""
    code, (values,) = device.run(LOOP, [np.zeros(8 + 2 * 128, np.uint32)], grid=2, block=64)
    assert code == 0
    return values[8::2].tolist(), values[9::2].tolist()


def test_in_a_loop_warps_wait_for_their_deferred_atomics(device, schedule):
    """The old values differ from those of `serial`, in a warp and between blocks, but no lane loops alone."""
    assert schedule("serial") == 0
    _, serial = run_loop(device)
    differing = set()
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        rounds, values = run_loop(device)
        assert set(rounds) == {ROUNDS}
        differing |= {k for k in range(128) if values[k] != serial[k]}
    assert len(differing) > 64 and {k // 64 for k in differing} == {0, 1}


def test_a_lock_that_the_lanes_of_a_warp_take_in_turn(device, schedule):
    """The lane that has the lock goes on, while a deferred compare-and-swap of its warp waits for another one."""
    text = kernel(
        """ld.param.u64 %l0, [p0];
        NEXT: atom.global.cas.b32 %r1, [%l0], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra NEXT;
        ld.volatile.global.u32 %r2, [%l0+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%l0+4], %r2;
        membar.gl; atom.global.exch.b32 %r3, [%l0], 0;""",
        ["p0"],
    )
    for seed in range(8):
        assert schedule(f"atomics:{seed}") == 0
        code, (values,) = device.run(text, [np.zeros(2, np.uint32)], grid=2, block=64)
        assert (code, values.tolist()) == (0, [0, 128])
