"""Branches, branch tables, scopes and calls, under every kind of schedule.

The fixture launch(body, values, grid, block) runs PTX under each schedule: LOAD reads the thread's value into %n, STORE
writes %r9 back in its place.
"""

import numpy as np
import pytest
from operands import wrap
from virtual_device import HEAD, LOAD, STORE, kernel  # kernel: %i is the thread in the grid, %t in the block

LAUNCH_TIMEOUT, LAUNCH_FAILED = 702, 719


def collatz(n):
    """Return the number of steps from n to 1."""
    steps = 0
    while n != 1:
        n, steps = (3 * n + 1 if n & 1 else n // 2), steps + 1
    return steps


def test_loops_of_different_length(launch):
    body = (
        LOAD
        + """mov.u32 %r9, 0;
    loop: setp.eq.u32 %p0, %n, 1; @%p0 bra done; and.b32 %r1, %n, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra even;
    mad.lo.u32 %n, %n, 3, 1; bra next;
    even: shr.u32 %n, %n, 1;
    next: add.u32 %r9, %r9, 1; bra.uni loop;
    done: """
        + STORE
    )
    values = np.random.default_rng(0).integers(1, 2000, 512).tolist()
    assert launch(body, values, 4, 128) == [collatz(value) for value in values]


def test_lanes_reconverge(device):
    """Lanes reconverge behind a branch, and behind a loop that they leave at different times."""
    body = (
        LOAD
        + """setp.lt.u32 %p0, %n, 10; @%p0 bra low; add.u32 %n, %n, 5; bra.uni both;
    low: sub.u32 %n, 20, %n;
    both: activemask.b32 %r1; and.b32 %r2, %t, 7;
    loop: setp.eq.u32 %p1, %r2, 0; @%p1 bra out; sub.u32 %r2, %r2, 1; bra loop;
    out: activemask.b32 %r3; and.b32 %r9, %r1, %r3;"""
        + STORE
    )
    code, (values,) = device.run(kernel(body, ["p0"]), [np.arange(32, dtype=np.uint32)])
    assert (code, set(values.tolist())) == (0, {0xFFFFFFFF})


def test_brx_idx_jumps_by_its_table(launch):
    body = (
        LOAD
        + """targets: .branchtargets zero, one, two, one;
    and.b32 %r1, %n, 3; brx.idx %r1, targets;
    zero: mov.u32 %r9, 100; bra done;
    one: mov.u32 %r9, 200; bra done;
    two: mov.u32 %r9, 300;
    done: """
        + STORE
    )
    assert launch(body, range(64)) == [(100, 200, 300, 200)[k & 3] for k in range(64)]


def test_scopes_declare_names_of_their_own(launch):
    body = (
        LOAD
        + """mov.u32 %r9, %n; { .reg .b32 %n; .reg .b32 %q; mov.u32 %n, 1000; add.u32 %r9, %r9, %n;
    { .reg .b64 %q; mov.u64 %q, 5; cvt.u32.u64 %n, %q; } add.u32 %r9, %r9, %n; } add.u32 %r9, %r9, %n;"""
        + STORE
    )
    assert launch(body, range(64)) == [2 * k + 1005 for k in range(64)]


def test_guarded_instructions(launch):
    body = (
        LOAD
        + """mov.u32 %r9, 7; and.b32 %r1, %n, 1; setp.ne.u32 %p0, %r1, 0; @%p0 mov.u32 %r9, 1;
    @!%p0 add.u32 %r9, %r9, %n;
    setp.gt.u32 %p1, %n, 40;"""
        + STORE.replace("st.", "@!%p1 st.")
    )
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
    """Calls have parameters and results, recurse, diverge, take bytes as an argument, or have no result."""
    body = (
        LOAD
        + """mov.u32 %r9, 5; and.b32 %r1, %n, 3; setp.eq.u32 %p0, %r1, 0; @%p0 bra over; and.b32 %r2, %n, 7;
    { .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %r1; st.param.b32 [b], %r2;
    call.uni (c), power, (a, b); ld.param.b32 %r9, [c]; }
    over: { .param .b64 d; .param .align 8 .b8 e[8]; st.param.b64 [d], %l0; st.param.v2.b32 [e], {%r9, %n};
    call.uni note, (d, e); }"""
    )
    values = list(range(128))
    expected = [wrap((5 if k & 3 == 0 else (k & 3) ** (k & 7)) + k, 32) for k in values]
    assert launch(body, values, 2, 64, head=FUNCTIONS) == expected


IN_REGISTERS = """
.func (.reg .b32 r, .reg .b64 q) both(.reg .b32 a, .param .b64 b, .reg .f32 c)
{ .reg .b64 %x; .reg .pred %p; cvt.u64.u32 q, a; ld.param.b64 %x, [b]; add.u64 q, q, %x; cvt.rzi.u32.f32 r, c;
  setp.gt.u32 %p, a, 40; @%p ret; add.u32 r, r, a; add.u32 a, a, 1000; }
.func (.reg .b32 r) down(.reg .b32 n)
{ .reg .b32 %m; .reg .pred %p; mov.b32 r, 0; setp.eq.u32 %p, n, 0; @%p ret; sub.u32 %m, n, 1; call (r), down, (%m);
  add.u32 r, r, n; ret; }
.func (.param .b32 r) plain(.param .b32 a, .param .f32 b)
{ .reg .b32 %x, %y; ld.param.b32 %x, [a]; ld.param.b32 %y, [b]; xor.b32 %x, %x, %y; st.param.b32 [r], %x; }
"""


def test_calls_with_registers_and_literals(launch):
    """Functions have their parameters in registers or in memory, and some lanes do not call."""
    body = (
        LOAD
        + """mov.u32 %r9, 5; setp.lt.u32 %p0, %n, 100; .reg .b32 %ten; mov.b32 %ten, 10;
    .reg .f32 %f; mov.f32 %f, 0f40400000;
    @%p0 call (%r9, %l3), both, (%n, 7, %f); @%p0 cvt.u32.u64 %r1, %l3; @%p0 mad.lo.u32 %r9, %r1, 1000, %r9;
    call (%r2), down, (%ten); call (_), down, (3); add.u32 %r9, %r9, %r2;
    { .param .b32 given; .param .b32 back; st.param.b32 [given], 4; call (back), down, (given);
    ld.param.b32 %r3, [back]; }
    add.u32 %r9, %r9, %r3; call (%r4), plain, (%n, 0f00000001); add.u32 %r9, %r9, %r4;
    { told: .callprototype (.reg .b32 _) _ (.reg .b32 _); .reg .b64 %at; mov.u64 %at, down;
    call (%r4), %at, (2), told; }
    add.u32 %r9, %r9, %r4;"""
        + STORE
    )

    def wanted(n):
        first = (n + 7) * 1000 + 3 + (n if n <= 40 else 0) if n < 100 else 5
        return wrap(first + 55 + 10 + (n ^ 1) + 3, 32)

    values = list(range(128))
    assert launch(body, values, 2, 64, head=IN_REGISTERS) == [wanted(value) for value in values]


@pytest.mark.parametrize(
    "call",
    [
        "call (%h1), down, (%r2);",
        "call (%r1), down, (%l2);",
        "call (%r1), plain, (%r2, 1);",
        "call (%r1), down, (p0);",
        "call down, (7);",
        "call (%r1), down, (7, 8);",
    ],
)
def test_calls_with_wrong_arguments_are_refused(device, call):
    device.assert_refused(kernel(call, ["p0"], head=IN_REGISTERS))


ENDLESS = {
    "a loop": "loop: bra loop;",
    "a loop with memory": "ld.param.u64 %l0, [p0]; loop: st.volatile.global.u32 [%l0], 1; bra loop;",
    "a barrier nobody else comes to": "bar.sync 0, 96;",
    "a mask of lanes that wait elsewhere": """setp.lt.u32 %p0, %t, 3;
           @%p0 bra some; bar.warp.sync 0xffffffff; bra end; some: bar.sync 0; end: exit;""",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_kernel_runs_for_ever(device, name):
    code, _, stderr = device.run_in_child(kernel(ENDLESS[name], ["p0"]), [np.zeros(4, np.uint32)], limit=200000)
    assert code == LAUNCH_TIMEOUT
    assert stderr


def test_calls_that_never_return_are_an_error(device):
    text = kernel(
        "call.uni again;", ["p0"], head=".func again { call.uni again; ret; }\n".replace("again {", "again()\n{")
    )
    code, _, stderr = device.run_in_child(text, [np.zeros(4, np.uint32)])
    assert (code, "too deep" in stderr) == (LAUNCH_FAILED, True)


def test_places_in_grid_and_block(device):
    text = f"""{HEAD}.visible .entry k(.param .u64 p0) {{ .reg .b32 %r<20>; .reg .b64 %l<4>;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %laneid;
    mov.u32 %r5, %warpid;
    mad.lo.u32 %r6, %r2, %r1, %r0; mul.wide.u32 %l1, %r6, 24; ld.param.u64 %l0, [p0]; add.u64 %l0, %l0, %l1;
    st.global.v2.u32 [%l0], {{%r0, %r1}}; st.global.v2.u32 [%l0+8], {{%r2, %r3}};
    st.global.v2.u32 [%l0+16], {{%r4, %r5}}; }}"""
    code, (values,) = device.run(text, [np.zeros(6 * 120, np.uint32)], 3, 40)
    assert code == 0
    assert values.reshape(-1, 6).tolist() == [[k % 40, 40, k // 40, 3, k % 40 % 32, k % 40 // 32] for k in range(120)]
