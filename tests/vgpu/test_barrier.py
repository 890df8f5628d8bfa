"""Barriers of blocks and warps, and threads that wait for each other, under every kind of schedule.

The fixture launch(body, values, grid, block) runs PTX under each schedule: LOAD reads the thread's value into %n, STORE
writes %r9 back in its place.
"""

import numpy as np
from operands import wrap
from virtual_device import LOAD, STORE

EXCHANGE = """.shared .align 4 .b32 s[1024]; mov.u32 %r1, s; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %t, 4, %r1; """


def test_barriers_order_shared_memory(launch):
    """In each round, a thread reads what another thread wrote in the round before."""
    body = (
        LOAD
        + EXCHANGE
        + """mov.u32 %r9, %n; mov.u32 %r4, 0; sub.u32 %r5, %r2, 1; sub.u32 %r5, %r5, %t; mad.lo.u32 %r5, %r5, 4, %r1;
    round: st.shared.u32 [%r3], %r9; bar.sync 0; ld.shared.u32 %r6, [%r5]; mad.lo.u32 %r9, %r6, 3, 1; bar.sync 0;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 9; @%p0 bra round;"""
        + STORE
    )
    values = np.random.default_rng(1).integers(0, 1000, 512)
    expected = values.reshape(2, 256)
    for _ in range(9):
        expected = expected[:, ::-1] * 3 + 1
    assert launch(body, values, 2, 256) == [wrap(int(value), 32) for value in expected.ravel()]


def test_reducing_barriers(launch):
    body = (
        LOAD
        + """setp.gt.u32 %p0, %n, 50; bar.red.popc.u32 %r1, 0, %p0; bar.red.and.pred %p1, 0, %p0;
    bar.red.or.pred %p2, 1, !%p0;
    bar.red.or.pred %p3, 0, %p0; selp.u32 %r2, 1000, 0, %p1; selp.u32 %r3, 2000, 0, %p2; selp.u32 %r4, 4000, 0, %p3;
    add.u32 %r9, %r1, %r2; add.u32 %r9, %r9, %r3; add.u32 %r9, %r9, %r4;"""
        + STORE
    )
    values = np.concatenate([np.arange(96), np.zeros(96), np.full(96, 60)])
    assert launch(body, values, 3, 96) == [45 + 2000 + 4000] * 96 + [2000] * 96 + [96 + 1000 + 4000] * 96


def test_bar_arrive_does_not_wait(launch):
    """One warp arrives at barrier 1 of 64 threads, another one waits; the third warp does not use it."""
    body = (
        LOAD
        + EXCHANGE
        + """mov.u32 %r9, %n; setp.ge.u32 %p0, %t, 64; @%p0 bra done; setp.ge.u32 %p1, %t, 32; @%p1 bra take;
    st.shared.u32 [%r3], %n; bar.arrive 1, 64; bra done;
    take: bar.sync 1, 64; ld.shared.u32 %r9, [%r3+-128];
    done: """
        + STORE
    )
    assert launch(body, range(96), 1, 96) == [*range(32), *range(32), *range(64, 96)]


def test_exited_threads_do_not_block_a_barrier(launch):
    body = LOAD + "setp.lt.u32 %p0, %t, 40; @%p0 exit; bar.sync 0; mov.u32 %r9, 9;" + STORE
    assert launch(body, range(128), 1, 128) == [*range(40), *[9] * 88]


def test_a_warp_barrier_is_reached_from_two_branches(launch):
    body = (
        LOAD
        + """.shared .b32 w[64]; mov.u32 %r1, w; mad.lo.u32 %r3, %t, 4, %r1; xor.b32 %r4, %t, 1;
    mad.lo.u32 %r5, %r4, 4, %r1;
    and.b32 %r2, %t, 1; setp.eq.u32 %p0, %r2, 0; @%p0 bra even; st.volatile.shared.u32 [%r3], %n;
    bar.warp.sync 0xffffffff; bra both;
    even: add.u32 %n, %n, 100; st.volatile.shared.u32 [%r3], %n; bar.warp.sync 0xffffffff;
    both: ld.volatile.shared.u32 %r9, [%r5];"""
        + STORE
    )
    assert launch(body, range(64)) == [(k ^ 1) + (100 if k & 1 else 0) for k in range(64)]


def test_a_lane_may_spin_on_another_lane(launch):
    """One lane holds a lock while the others spin, so lanes progress independently."""
    body = (
        LOAD
        + """.shared .b32 lock[2]; mov.u32 %r1, lock;
    spin: atom.shared.cas.b32 %r2, [%r1], 0, 1; setp.ne.u32 %p0, %r2, 0; @%p0 bra spin;
    ld.volatile.shared.u32 %r3, [%r1+4]; add.u32 %r3, %r3, 1; st.volatile.shared.u32 [%r1+4], %r3; membar.cta;
    atom.shared.exch.b32 %r4, [%r1], 0; bar.sync 0; ld.volatile.shared.u32 %r9, [%r1+4];"""
        + STORE
    )
    assert launch(body, range(64)) == [64] * 64


def test_a_block_may_spin_on_a_later_block(launch):
    """Blocks wait as in a look-back scan, and make progress in every order of blocks."""
    head = ".global .align 4 .u32 flag;"
    body = (
        LOAD
        + """setp.ne.u32 %p0, %i, 31; @%p0 bra wait; mov.u32 %r2, 5; st.volatile.global.u32 [flag], %r2;
    wait: ld.volatile.global.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0; @%p1 bra wait; mov.u32 %r9, %r1;"""
        + STORE
    )
    assert launch(body, range(32), 32, 1, head=head, limit=10**8) == [5] * 32
