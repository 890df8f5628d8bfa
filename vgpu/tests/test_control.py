"""Branches, tables, scopes, calls and barriers, under every kind of schedule."""

import numpy as np
import pytest
from operands import wrap
from virtual_device import HEAD, kernel

SCHEDULES = ["serial", "reverse", "random:1", "random:2", "adversary:3"]
STORE = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; st.global.u32 [%l0], %r9;"
LOAD = ".reg .b32 %r9, %n; ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; ld.global.u32 %n, [%l0];"
LAUNCH_FAILED = 719


@pytest.fixture(params=SCHEDULES)
def launch(device, request):
    def run(body, values, grid=1, block=64, head="", **how):
        code, (made, *_), said = device.apart(kernel(body, ["p0"], head=head), [np.array(values, np.uint32)], request.param,
                                              grid=grid, block=block, **how)
        assert code == 0, said
        return made.tolist()
    return run


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (3 * n + 1 if n & 1 else n // 2), steps + 1
    return steps


def test_loops_of_different_length(launch):
    body = LOAD + """mov.u32 %r9, 0;
    loop: setp.eq.u32 %p0, %n, 1; @%p0 bra done; and.b32 %r1, %n, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra even;
    mad.lo.u32 %n, %n, 3, 1; bra next;
    even: shr.u32 %n, %n, 1;
    next: add.u32 %r9, %r9, 1; bra.uni loop;
    done: """ + STORE
    values = np.random.default_rng(0).integers(1, 2000, 512).tolist()
    assert launch(body, values, 4, 128) == [collatz(one) for one in values]


def test_lanes_come_together_again(device):
    """Behind a branch, and behind a loop that they leave at different times."""
    body = LOAD + """setp.lt.u32 %p0, %n, 10; @%p0 bra low; add.u32 %n, %n, 5; bra.uni both;
    low: sub.u32 %n, 20, %n;
    both: activemask.b32 %r1; and.b32 %r2, %t, 7;
    loop: setp.eq.u32 %p1, %r2, 0; @%p1 bra out; sub.u32 %r2, %r2, 1; bra loop;
    out: activemask.b32 %r3; and.b32 %r9, %r1, %r3;""" + STORE
    code, (made,) = device.run(kernel(body, ["p0"]), [np.arange(32, dtype=np.uint32)])
    assert (code, set(made.tolist())) == (0, {0xFFFFFFFF})


def test_tables_of_targets(launch):
    body = LOAD + """targets: .branchtargets zero, one, two, one;
    and.b32 %r1, %n, 3; brx.idx %r1, targets;
    zero: mov.u32 %r9, 100; bra done;
    one: mov.u32 %r9, 200; bra done;
    two: mov.u32 %r9, 300;
    done: """ + STORE
    assert launch(body, range(64)) == [(100, 200, 300, 200)[k & 3] for k in range(64)]


def test_scopes_have_their_own_names(launch):
    body = LOAD + """mov.u32 %r9, %n; { .reg .b32 %n; .reg .b32 %q; mov.u32 %n, 1000; add.u32 %r9, %r9, %n;
    { .reg .b64 %q; mov.u64 %q, 5; cvt.u32.u64 %n, %q; } add.u32 %r9, %r9, %n; } add.u32 %r9, %r9, %n;""" + STORE
    assert launch(body, range(64)) == [2 * k + 1005 for k in range(64)]


def test_guards(launch):
    body = LOAD + """mov.u32 %r9, 7; and.b32 %r1, %n, 1; setp.ne.u32 %p0, %r1, 0; @%p0 mov.u32 %r9, 1; @!%p0 add.u32 %r9, %r9, %n;
    setp.gt.u32 %p1, %n, 40;""" + STORE.replace("st.", "@!%p1 st.")
    assert launch(body, range(64)) == [k if k > 40 else 1 if k & 1 else 7 + k for k in range(64)]


FUNCTIONS = """
.func (.param .b32 out) power(.param .b32 base, .param .b32 exponent)
{ .reg .b32 %a, %b, %c; .reg .pred %p; .param .b32 given; .param .b32 less; .param .b32 back;
  ld.param.u32 %a, [base]; ld.param.u32 %b, [exponent]; mov.u32 %c, 1; setp.eq.u32 %p, %b, 0; @%p bra end;
  sub.u32 %b, %b, 1; st.param.b32 [given], %a; st.param.b32 [less], %b; call.uni (back), power, (given, less);
  ld.param.b32 %c, [back]; mul.lo.u32 %c, %c, %a;
  end: st.param.b32 [out], %c; ret; }
.func note(.param .b64 where, .param .align 8 .b8 pair[8])
{ .reg .b64 %at; .reg .b32 %x, %y; ld.param.u64 %at, [where]; ld.param.v2.u32 {%x, %y}, [pair]; add.u32 %x, %x, %y;
  st.global.u32 [%at], %x; ret; }
"""


def test_calls(launch):
    """With parameters and results, recursive, from diverged lanes, with bytes as an argument and without a result."""
    body = LOAD + """mov.u32 %r9, 5; and.b32 %r1, %n, 3; setp.eq.u32 %p0, %r1, 0; @%p0 bra over; and.b32 %r2, %n, 7;
    { .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %r1; st.param.b32 [b], %r2;
    call.uni (c), power, (a, b); ld.param.b32 %r9, [c]; }
    over: { .param .b64 d; .param .align 8 .b8 e[8]; st.param.b64 [d], %l0; st.param.v2.b32 [e], {%r9, %n};
    call.uni note, (d, e); }"""
    values = list(range(128))
    wanted = [wrap((5 if k & 3 == 0 else (k & 3) ** (k & 7)) + k, 32) for k in values]
    assert launch(body, values, 2, 64, head=FUNCTIONS) == wanted


EXCHANGE = """.shared .align 4 .b32 s[1024]; mov.u32 %r1, s; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %t, 4, %r1; """


def test_barriers_order_shared_memory(launch):
    """Every round each thread reads what another wrote the round before."""
    body = LOAD + EXCHANGE + """mov.u32 %r9, %n; mov.u32 %r4, 0; sub.u32 %r5, %r2, 1; sub.u32 %r5, %r5, %t; mad.lo.u32 %r5, %r5, 4, %r1;
    round: st.shared.u32 [%r3], %r9; bar.sync 0; ld.shared.u32 %r6, [%r5]; mad.lo.u32 %r9, %r6, 3, 1; bar.sync 0;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 9; @%p0 bra round;""" + STORE
    values = np.random.default_rng(1).integers(0, 1000, 512)
    wanted = values.reshape(2, 256)
    for _ in range(9):
        wanted = wanted[:, ::-1] * 3 + 1
    assert launch(body, values, 2, 256) == [wrap(int(one), 32) for one in wanted.ravel()]


def test_barriers_that_reduce(launch):
    body = LOAD + """setp.gt.u32 %p0, %n, 50; bar.red.popc.u32 %r1, 0, %p0; bar.red.and.pred %p1, 0, %p0; bar.red.or.pred %p2, 1, !%p0;
    bar.red.or.pred %p3, 0, %p0; selp.u32 %r2, 1000, 0, %p1; selp.u32 %r3, 2000, 0, %p2; selp.u32 %r4, 4000, 0, %p3;
    add.u32 %r9, %r1, %r2; add.u32 %r9, %r9, %r3; add.u32 %r9, %r9, %r4;""" + STORE
    values = np.concatenate([np.arange(96), np.zeros(96), np.full(96, 60)])
    assert launch(body, values, 3, 96) == [45 + 2000 + 4000] * 96 + [2000] * 96 + [96 + 1000 + 4000] * 96


def test_some_arrive_and_others_wait(launch):
    """One warp makes, the other takes: barrier 1 of 64 threads; the third warp has nothing to do with it."""
    body = LOAD + EXCHANGE + """mov.u32 %r9, %n; setp.ge.u32 %p0, %t, 64; @%p0 bra done; setp.ge.u32 %p1, %t, 32; @%p1 bra take;
    st.shared.u32 [%r3], %n; bar.arrive 1, 64; bra done;
    take: bar.sync 1, 64; ld.shared.u32 %r9, [%r3+-128];
    done: """ + STORE
    assert launch(body, range(96), 1, 96) == [*range(32), *range(32), *range(64, 96)]


def test_the_rest_meets_when_others_have_ended(launch):
    body = LOAD + "setp.lt.u32 %p0, %t, 40; @%p0 exit; bar.sync 0; mov.u32 %r9, 9;" + STORE
    assert launch(body, range(128), 1, 128) == [*range(40), *[9] * 88]


def test_lanes_of_a_warp_meet_from_two_branches(launch):
    body = LOAD + """.shared .b32 w[64]; mov.u32 %r1, w; mad.lo.u32 %r3, %t, 4, %r1; xor.b32 %r4, %t, 1; mad.lo.u32 %r5, %r4, 4, %r1;
    and.b32 %r2, %t, 1; setp.eq.u32 %p0, %r2, 0; @%p0 bra even; st.volatile.shared.u32 [%r3], %n; bar.warp.sync 0xffffffff; bra both;
    even: add.u32 %n, %n, 100; st.volatile.shared.u32 [%r3], %n; bar.warp.sync 0xffffffff;
    both: ld.volatile.shared.u32 %r9, [%r5];""" + STORE
    assert launch(body, range(64)) == [(k ^ 1) + (100 if k & 1 else 0) for k in range(64)]


def test_a_thread_may_wait_for_another_of_its_warp(launch):
    """A lock that one lane holds while the others spin: the lanes are independent."""
    body = LOAD + """.shared .b32 lock[2]; mov.u32 %r1, lock;
    spin: atom.shared.cas.b32 %r2, [%r1], 0, 1; setp.ne.u32 %p0, %r2, 0; @%p0 bra spin;
    ld.volatile.shared.u32 %r3, [%r1+4]; add.u32 %r3, %r3, 1; st.volatile.shared.u32 [%r1+4], %r3; membar.cta;
    atom.shared.exch.b32 %r4, [%r1], 0; bar.sync 0; ld.volatile.shared.u32 %r9, [%r1+4];""" + STORE
    assert launch(body, range(64)) == [64] * 64


def test_a_block_may_wait_for_a_later_one(launch):
    """As in a scan that looks back: with any order of blocks somebody gets on."""
    head = ".global .align 4 .u32 flag;"
    body = LOAD + """setp.ne.u32 %p0, %i, 31; @%p0 bra wait; mov.u32 %r2, 5; st.volatile.global.u32 [flag], %r2;
    wait: ld.volatile.global.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0; @%p1 bra wait; mov.u32 %r9, %r1;""" + STORE
    assert launch(body, range(32), 32, 1, head=head, limit=10**9) == [5] * 32


ENDLESS = {"a loop": "loop: bra loop;", "a loop with memory": "ld.param.u64 %l0, [p0]; loop: st.volatile.global.u32 [%l0], 1; bra loop;",
           "a barrier nobody else comes to": "bar.sync 0, 96;", "a mask of lanes that wait elsewhere": """setp.lt.u32 %p0, %t, 3;
           @%p0 bra some; bar.warp.sync 0xffffffff; bra end; some: bar.sync 0; end: exit;"""}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_kernel_runs_for_ever(device, name):
    code, _, said = device.apart(kernel(ENDLESS[name], ["p0"]), [np.zeros(4, np.uint32)], limit=200000)
    assert code == LAUNCH_FAILED
    assert said


def test_calls_that_never_return_are_an_error(device):
    text = kernel("call.uni again;", ["p0"], head=".func again { call.uni again; ret; }\n".replace("again {", "again()\n{"))
    code, _, said = device.apart(text, [np.zeros(4, np.uint32)])
    assert (code, "too deep" in said) == (LAUNCH_FAILED, True)


def test_places_in_grid_and_block(device):
    text = f"""{HEAD}.visible .entry k(.param .u64 p0) {{ .reg .b32 %r<20>; .reg .b64 %l<4>;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %laneid; mov.u32 %r5, %warpid;
    mad.lo.u32 %r6, %r2, %r1, %r0; mul.wide.u32 %l1, %r6, 24; ld.param.u64 %l0, [p0]; add.u64 %l0, %l0, %l1;
    st.global.v2.u32 [%l0], {{%r0, %r1}}; st.global.v2.u32 [%l0+8], {{%r2, %r3}}; st.global.v2.u32 [%l0+16], {{%r4, %r5}}; }}"""
    code, (made,) = device.run(text, [np.zeros(6 * 120, np.uint32)], 3, 40)
    assert code == 0
    assert made.reshape(-1, 6).tolist() == [[k % 40, 40, k // 40, 3, k % 40 % 32, k % 40 // 32] for k in range(120)]
