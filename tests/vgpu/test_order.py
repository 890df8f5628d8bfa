"""VGPU_CHECK=order proves kernels with the same result in every order, and no others.

Each rule has kernels that it must accept, and kernels just outside of it that no rule may accept.
"""

import pytest
from order_verdicts import verdicts
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

# Parts of the kernels below. P0: the array's address; OWN: the address of the thread's own word in it.
P0 = "ld.param.u64 %l0, [p0];"
OWN = f"{P0} mul.wide.u32 %l1, %i, 4; add.u64 %l1, %l0, %l1;"  # %l1: the address of the thread's own word
SHARED = ".shared .align 4 .b8 word[1024];"
OWN_SHARED = "mov.u64 %l2, word; mul.wide.u32 %l3, %t, 4; add.u64 %l3, %l2, %l3;"
NEIGHBOR = "xor.b32 %r1, %t, DISTANCE; mul.wide.u32 %l4, %r1, 4; add.u64 %l4, %l2, %l4; ld.shared.u32 %r2, [%l4];"
EXCHANGE = f"{OWN} {OWN_SHARED} st.shared.u32 [%l3], %t; MEET {NEIGHBOR} st.global.u32 [%l1], %r2;"
# %l4: the address of a local array, which ptxas keeps in memory because its index is loaded.
LOCAL = f""".local .align 4 .b8 own[32]; {P0} ld.volatile.global.u32 %r4, [%l0+1020]; cvt.u64.u32 %l4, %r4;
mov.u64 %l2, own; add.u64 %l4, %l4, %l2;"""
# The float maximum by compare-and-swap: the operand is the thread's number.
MAXIMUM = f"""{P0} cvt.rn.f32.u32 %r1, %i; ld.global.u32 %r2, [%l0];
AGAIN: mov.b32 %r3, %r2; max.f32 %r4, %r3, %r1; atom.global.cas.b32 %r2, [%l0], %r3, %r4;
setp.ne.u32 %p1, %r2, %r3; @%p1 bra AGAIN;"""
ARRIVES = "setp.lt.u32 %p1, %t, 32; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64;"
# A tree over shared memory, from 64 words down to one, which thread 0 writes for its block.
BLOCK_SUM = f"""{P0} {OWN_SHARED} cvt.rn.f32.u32 %r1, %i; mul.rn.f32 %r1, %r1, 0f3DCCCCCD; st.shared.f32 [%l3], %r1;
mov.u32 %r2, 32; AGAIN: bar.sync 0; setp.ge.u32 %p1, %t, %r2; @%p1 bra LESS;
mul.wide.u32 %l4, %r2, 4; add.u64 %l4, %l3, %l4; ld.shared.f32 %r3, [%l3]; ld.shared.f32 %r4, [%l4];
add.rn.f32 %r3, %r3, %r4; st.shared.f32 [%l3], %r3; LESS: shr.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN;
mov.u32 %r5, %ctaid.x; mul.wide.u32 %l1, %r5, 4; add.u64 %l1, %l0, %l1; setp.eq.u32 %p1, %t, 0;
@%p1 ld.shared.f32 %r3, [word]; @%p1 st.global.f32 [%l1], %r3;"""
# A block waits for the flag of its predecessor's sum, and adds its own index: sums in p0[b], flags from p0[32] on.
LOOK_BACK = f"""{P0} mov.u32 %r5, %ctaid.x; mul.wide.u32 %l1, %r5, 4; add.u64 %l1, %l0, %l1; mov.u32 %r2, 0;
setp.eq.u32 %p1, %r5, 0; @%p1 bra READY;
AGAIN: ld.acquire.gpu.global.u32 %r1, [%l1+124]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN;
ld.relaxed.gpu.global.u32 %r2, [%l1+-4];
READY: add.u32 %r2, %r2, %r5; st.relaxed.gpu.global.u32 [%l1], %r2; st.release.gpu.global.u32 [%l1+128], 1;"""
THREAD_0_JUMPS = "setp.eq.u32 %p1, %i, 0; @%p1 bra FIRST;"  # thread 0 goes to FIRST
LAST_BLOCK = f"""{P0} st.global.u32 [%l0+64], 1; membar.gl; atom.global.add.u32 %r1, [%l0], 1;
setp.eq.u32 %p1, %r1, 3; @%p1 st.global.u32 [%l0+4], %i;"""


# Each thread stores 1 and then LAST to one word.
TWO_STORES = "st.volatile.global.u32 [%l0], 1; st.volatile.global.u32 [%l0], LAST;"
# Each thread stores its number to one word; after a barrier, thread 0 stores 7 there.
REPLACED = """st.volatile.global.u32 [%l0+512], %t; USE bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 exit;
st.global.u32 [%l0+512], 7;"""


# A line is the 32 consecutive words that a warp accesses.  Warp 0 stores to a line of zeros, of which every second word
# stays zero; warp 1 reads words of it.  The launch has too many threads for the rule "exploration".
PARTLY_SILENT = f"""setp.ge.u32 %p1, %i, 64; @%p1 exit; {OWN} START mov.b64 %l5, BASE; mul.wide.u32 %l3, %t, 4;
add.u64 %l5, %l5, %l3; setp.lt.u32 %p1, %t, 32; @%p1 bra FIRST;
mov.b64 %l5, BASE; and.b32 %r1, %t, 30; or.b32 %r1, %r1, WORD; mul.wide.u32 %l3, %r1, 4; add.u64 %l5, %l5, %l3;
ld.u32 %r2, [%l5]; add.u32 %r2, %r2, 1; st.global.u32 [%l1], %r2; exit;
FIRST: and.b32 %r1, %t, 1; st.u32 [%l5], %r1;"""


def partly_silent(space, word):
    """Return PARTLY_SILENT in a state space, where warp 1 reads the even words (0) or the odd ones (1)."""
    start = "cvta.shared.u64 %l6, word; add.u64 %l4, %l6, %l2; st.u32 [%l4], 0; bar.sync 0;"
    start = f"mul.wide.u32 %l2, %t, 4; {start}" if space == "shared" else ""
    base = {"shared": "%l6", "global": "%l0"}[space]
    return PARTLY_SILENT.replace("START", start).replace("BASE", base).replace("WORD", str(word))


def exchange(meet, distance):
    """Return EXCHANGE with this barrier, and a neighbor at this distance."""
    return EXCHANGE.replace("MEET", meet).replace("DISTANCE", str(distance))


# name: body, grid, block, the rule of the check that the proof needs or None
INDEPENDENT = {
    "own words": (f"{OWN} st.global.u32 [%l1], %i;", 2, 64, None),
    "own words, by pairs": (f"{P0} mul.wide.u32 %l1, %i, 8; add.u64 %l1, %l0, %l1;"
                            "st.global.u64 [%l1], 7;", 2, 32, None),
    "a local variable": (
        f"{LOCAL} {OWN} st.local.u32 [%l4+4], %i; ld.local.u32 %r1, [%l4+4]; cvta.local.u64 %l2, %l4;"
        "ld.volatile.u32 %r2, [%l2+4]; add.u32 %r1, %r1, %r2; st.global.u32 [%l1], %r1;", 2, 64, None),
    "own bytes": (f"{P0} cvt.u64.u32 %l1, %i; add.u64 %l1, %l0, %l1; st.global.u8 [%l1], %i;", 2, 64, None),
    "one value of all": (f"{P0} st.global.u32 [%l0], 5;", 2, 64, "one_value"),
    "the value that is there": (f"{P0} st.global.u32 [%l0], 0; ld.global.u32 %r1, [%l0];", 2, 64, "same_value"),
    "a word that a store of the line leaves unchanged": (partly_silent("global", 0), 20, 64, None),
    "a shared word that a store of the line leaves unchanged": (partly_silent("shared", 0), 20, 64, None),
    "a block's barrier": (exchange("bar.sync 0;", 64), 2, 128, None),
    "a warp's barrier": (exchange("bar.warp.sync -1;", 1), 2, 64, None),
    "a block's sum": (BLOCK_SUM, 4, 64, None),
    "a histogram": (f"{P0} and.b32 %r1, %i, 3; mul.wide.u32 %l1, %r1, 4; add.u64 %l1, %l0, %l1;"
                    "red.global.add.u32 [%l1], 1;", 4, 64, "commuting"),
    "a maximum": (f"{P0} red.global.max.u32 [%l0], %i;", 4, 64, "commuting"),
    "an old value that nobody uses": (f"{P0} atom.global.add.u32 %r1, [%l0], %i;", 4, 64, "commuting"),
    "a counter with one bound": (f"{P0} red.global.inc.u32 [%l0], 100;", 4, 64, "commuting"),
    "64 bits": (f"{P0} red.global.add.u64 [%l0], 5;", 4, 64, "commuting"),
    "a block's scope": (f"{P0} red.cta.global.add.u32 [%l0], 5;", 1, 64, "commuting"),
    "a sum of whole numbers": (f"{P0} cvt.rn.f32.u32 %r1, %i; red.global.add.f32 [%l0], %r1;", 4, 64, "exact_sum"),
    "a sum of doubles": (f"{P0} cvt.rn.f64.u32 %l1, %i; red.global.add.f64 [%l0], %l1;", 4, 64, "exact_sum"),
    "two addends to a zero": (f"{P0} mov.b32 %r1, 0f3DCCCCCD; red.global.add.f32 [%l0], %r1;", 2, 1, "exact_sum"),
    "a maximum of floats": (MAXIMUM, 4, 32, "update_loop"),
    "three equal addends": (f"{P0} mov.b32 %r1, 0f3DCCCCCD; red.global.add.f32 [%l0], %r1;", 3, 1, "exploration"),
    "one value at the end": (f"{P0} {TWO_STORES.replace('LAST', '0')}", 2, 2, "exploration"),
    "values that another one replaces": (f"{OWN} {REPLACED.replace('USE', '')}", 1, 4, "exploration"),
    "its own old value": (f"{OWN} atom.global.add.u32 %r1, [%l1], 7; st.global.u32 [%l1], %r1;", 2, 64, None),
    "a clock that nobody reads": (f"mov.u32 %r1, %clock; {OWN} st.global.u32 [%l1], %i;", 2, 64, None),
}  # fmt: skip
# name: body, grid, block, the reason (race: a plain access; memory_order: the order of atomic accesses shows)
DEPENDENT = {
    "values of two blocks": (f"{P0} mov.u32 %r1, %ctaid.x; st.global.u32 [%l0], %r1;", 2, 1, "race"),
    "values of two lanes": (f"{P0} st.global.u32 [%l0], %t;", 1, 2, "race"),
    "bytes of one word": (f"{P0} shr.u32 %r1, %i, 1; cvt.u64.u32 %l1, %r1; add.u64 %l1, %l0, %l1;"
                          "st.global.u8 [%l1], %i;", 1, 64, "race"),
    "a word that a store of the line changes": (partly_silent("global", 1), 20, 64, "race"),
    "a shared word that a store of the line changes": (partly_silent("shared", 1), 20, 64, "race"),
    "no barrier": (exchange("", 64), 1, 128, "race"),
    "a barrier of the warp alone": (exchange("bar.warp.sync -1;", 64), 1, 128, "race"),
    "a barrier of some": (exchange("bar.sync 1, 64;", 32), 1, 128, "race"),
    "a barrier of some, after the others have exited": (
        f"{OWN} setp.lt.u32 %p1, %t, 32; @%p1 bra FIRST; bar.sync 1, 64; ld.volatile.global.u32 %r1, [%l0+512];"
        "st.global.u32 [%l1], %r1; exit; FIRST: st.volatile.global.u32 [%l0+512], 1;", 1, 96, "memory_order"),
    "a barrier at which some arrive": (exchange(ARRIVES, 32), 1, 64, "race"),
    "an unwritten local variable": (
        f"{LOCAL} {OWN} st.local.u32 [%l4+4], %i; ld.local.u32 %r1, [%l4]; st.global.u32 [%l1], %r1;",
        2, 64, "uninitialized"),
    "an unwritten local variable at a generic address": (
        f"{LOCAL} {OWN} st.local.u32 [%l4+4], %i; cvta.local.u64 %l2, %l4; ld.volatile.u32 %r1, [%l2];"
        "st.global.u32 [%l1], %r1;", 2, 64, "uninitialized"),
    "a fence": (exchange("membar.gl;", 64), 1, 128, "race"),
    "one value, and one lane looks in between": (
        f"{P0} {THREAD_0_JUMPS} st.global.u32 [%l0], 1; exit;"
        "FIRST: st.global.u32 [%l0], 5; ld.volatile.global.u32 %r1, [%l0]; st.global.u32 [%l0+4], %r1;"
        "st.global.u32 [%l0], 1;",
        2, 1, "race"),
    "one value that somebody reads": (f"{P0} {THREAD_0_JUMPS} st.global.u32 [%l0], 5; exit;"
                                      "FIRST: ld.global.u32 %r1, [%l0]; st.global.u32 [%l0+4], %r1;", 2, 1, "race"),
    "a read beside a sum": (f"{OWN} ld.global.u32 %r1, [%l0+512]; red.global.add.u32 [%l0+512], 1;"
                            "st.global.u32 [%l1], %r1;", 1, 64, "race"),
    "two families": (f"{P0} {THREAD_0_JUMPS} red.global.add.u32 [%l0], 5; exit; FIRST: red.global.max.u32 [%l0], 3;",
                     2, 1, "memory_order"),
    "two bounds": (f"{P0} red.global.inc.u32 [%l0], %i;", 2, 2, "memory_order"),
    "exchanged values": (f"{P0} atom.global.exch.b32 %r1, [%l0], %i;", 2, 1, "memory_order"),
    "a block's scope in several blocks": (f"{P0} red.cta.global.add.u32 [%l0], 5;", 2, 32, "scope"),
    "a block's scope beside the device's": (
        f"{P0} {THREAD_0_JUMPS} red.gpu.global.add.u32 [%l0], 5; exit; FIRST: red.cta.global.add.u32 [%l0], 3;",
        2, 1, "scope"),
    "a sum of halves": (f"{P0} red.global.add.noftz.f16x2 [%l0], %i;", 2, 32, "half_sum"),
    "a ticket": (f"{OWN} atom.global.add.u32 %r1, [%l0+512], 1; st.global.u32 [%l1], %r1;", 2, 32, "old_value"),
    "a look-back": (LOOK_BACK, 4, 1, "memory_order"),
    "who is last": (LAST_BLOCK, 4, 1, "old_value"),
    "a flag": (f"{P0} {THREAD_0_JUMPS} ld.volatile.global.u32 %r1, [%l0]; st.global.u32 [%l0+4], %r1; exit;"
               "FIRST: st.volatile.global.u32 [%l0], 1;", 2, 1, "memory_order"),
    "a sum that rounds": (f"{P0} cvt.rn.f32.u32 %r1, %i; mul.rn.f32 %r1, %r1, 0f3DCCCCCD;"
                          "red.global.add.f32 [%l0], %r1;", 2, 32, "rounding"),
    "three addends to a zero": (f"{P0} mov.u32 %r1, 1; shl.b32 %r1, %r1, %i; cvt.rn.f32.u32 %r1, %r1;"
                                "mul.rn.f32 %r1, %r1, 0f3DCCCCCD; red.global.add.f32 [%l0], %r1;", 3, 1, "rounding"),
    "values at the end that differ": (f"{P0} {TWO_STORES.replace('LAST', '%i')}", 2, 2, "memory_order"),
    "a use of a value that another one replaces": (
        f"{OWN} {REPLACED.replace('USE', 'ld.global.u32 %r1, [%l0+512]; st.global.u32 [%l1], %r1;')}", 1, 4, "race"),
    "an atomic beside a store": (
        f"{P0} {THREAD_0_JUMPS} st.global.u32 [%l0], 5; exit; FIRST: red.global.or.b32 [%l0], 0;", 2, 1, "race"),
    "one bit too many": (f"{P0} setp.eq.u32 %p1, %i, 0; selp.b32 %r1, 0f4B800000, 0f3F800000, %p1;"  # 2^24 and ones
                         "red.global.add.f32 [%l0], %r1;", 3, 1, "rounding"),
    "a maximum that somebody reads": (MAXIMUM + f" {OWN} st.global.u32 [%l1+512], %r2;", 4, 32, "race"),
    "a clock": (f"mov.u32 %r1, %clock; {OWN} st.global.u32 [%l1], %r1;", 1, 1, "clock"),
    "a multiprocessor": (f"mov.u32 %r1, %smid; {OWN} st.global.u32 [%l1], %r1;", 1, 1, "processor"),
    "who is active": (f"activemask.b32 %r1; {OWN} st.global.u32 [%l1], %r1;", 1, 32, "active_lanes"),
    "memory that nobody wrote": (f"{OWN} {OWN_SHARED} ld.shared.u32 %r1, [%l3]; st.global.u32 [%l1], %r1;",
                                 1, 32, "uninitialized"),
    "an asynchronous copy": (f"{OWN} {OWN_SHARED} cvt.u32.u64 %r1, %l3; cp.async.ca.shared.global [%r1], [%l1], 4;"
                             "ld.volatile.shared.u32 %r2, [%l3]; st.global.u32 [%l1+512], %r2;", 1, 32,
                             "asynchronous_copy"),
    "a fault": ("mov.u64 %l0, 8; st.global.u32 [%l0], 1;", 1, 1, "fault"),
}  # fmt: skip
CHECKED = {**INDEPENDENT, **DEPENDENT}  # the fault comes last: it ends the context


@pytest.fixture(scope="module", params=["serial", "reverse", "random:1"])
def verdict_by_kernel(request):
    """Return the verdicts on all kernels by name."""
    kernels = {
        name: (kernel(body, ["p0"], head=SHARED if "word" in body else ""), grid, block)
        for name, (body, grid, block, _) in CHECKED.items()
    }
    return verdicts(kernels, request.param)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_schedule_independent_kernels_are_proved(verdict_by_kernel, name):
    verdict, rule = verdict_by_kernel[name], INDEPENDENT[name][3]
    assert verdict["proved"], verdict
    assert verdict["reasons"] == []
    assert rule is None or rule in verdict["rules"]


@pytest.mark.parametrize("name", DEPENDENT)
def test_order_dependent_kernels_are_not_proved(verdict_by_kernel, name):
    verdict = verdict_by_kernel[name]
    assert not verdict["proved"]
    assert DEPENDENT[name][3] in {reason["reason"] for reason in verdict["reasons"]}


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        # Stores of 4 and of 1 byte: undefined in CUDA's memory model.
        (f"{P0} {THREAD_0_JUMPS} st.global.u32 [%l0], 1; st.global.u32 [%l0], 0; exit;"
         "FIRST: st.global.u8 [%l0], 1; st.global.u8 [%l0], 0;", 2, 1),
        (f"{P0} {TWO_STORES.replace('LAST', '0')}", 9, 1),  # 18 accesses to one location
        (f"{P0} setp.gt.u32 %p1, %i, 1; @%p1 exit; {TWO_STORES.replace('LAST', '0')}", 3, 512),  # 1,536 threads
    ],
)  # fmt: skip
def test_only_a_few_accesses_of_one_width_are_explored(body, grid, block):
    (verdict,) = verdicts({"kernel": (kernel(body, ["p0"]), grid, block)}).values()
    assert not verdict["proved"]
    assert "exploration" not in verdict["rules"]


def test_a_call_begins_with_unwritten_local_variables():
    """Neither what an earlier call has written nor what the caller has written counts; the caller's stays known."""
    head = """.func (.param .b32 r) own_word(.param .b32 n) {
    .local .align 4 .b8 own[32]; .reg .b32 %a<3>; .reg .pred %p; ld.param.u32 %a0, [n]; setp.eq.u32 %p, %a0, 0;
    @!%p st.local.u32 [own], %a0; mov.u32 %a1, 7;
    READ ld.local.u32 %a1, [own]; st.param.b32 [r], %a1; ret; }"""
    call = "{ .param .b32 n; .param .b32 r; st.param.b32 [n], VALUE; call (r), own_word, (n); ld.param.b32 %r2, [r]; }"
    body = f"""{LOCAL} {OWN} st.local.u32 [%l4], %i; {call.replace("VALUE", "5")} {call.replace("VALUE", "0")}
    ld.local.u32 %r1, [%l4]; add.u32 %r1, %r1, %r2; st.global.u32 [%l1], %r1;"""
    kernels = {guard: (kernel(body, ["p0"], head=head.replace("READ", guard)), 1, 32) for guard in ("@!%p", "@%p", "")}
    found = verdicts(kernels)
    assert [found[guard]["proved"] for guard in kernels] == [True, False, False]
    assert {reason["reason"] for reason in found["@%p"]["reasons"]} == {"uninitialized"}
