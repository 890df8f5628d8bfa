"""Kernels of test_sass_order.py.  The command writes kernels/order.ptx; kernels/order.fatbin is its machine code:

python tests/vgpu/sass_order_kernels.py && cd tests/vgpu/kernels && ptxas -arch=sm_80 order.ptx -o order.cubin &&
fatbinary -64 --create=order.fatbin --compress-all --compress-mode=size --image3=kind=elf,sm=80,file=order.cubin
"""

import re
from pathlib import Path

import test_order
from test_order import LOCAL, NEIGHBOR, OWN, OWN_SHARED, P0
from virtual_device import SCRATCH

# Imported parts.  P0: %l0 is the array's address; OWN: and %l1 that of the thread's word; OWN_SHARED: %l3 that of its
# shared word; NEIGHBOR reads the shared word of thread %t ^ DISTANCE.  %i is the thread in the grid, %t in the block.
TEXT = Path(__file__).with_name("kernels") / "order.ptx"
HEAD = """.version 8.0
.target sm_80
.address_size 64
.shared .align 8 .b8 word[1024];
.func store_some(.param .b64 to, .param .b32 count) {
.reg .b64 %l<2>; .reg .b32 %r<2>; .reg .pred %p;
ld.param.u64 %l0, [to]; ld.param.u32 %r0, [count]; st.volatile.global.u32 [%l0+512], %r0;
setp.eq.u32 %p, %r0, 0; @%p ret; sub.u32 %r0, %r0, 1; call store_some, (%l0, %r0);
st.volatile.global.u32 [%l0+512], %r0;
}
"""
NOT_RECOGNIZED = {"a maximum of floats"}  # its loop of compare-and-swap is known in PTX alone
LOCKSTEP = {"who is active"}  # in machine code, its activemask gives all of a warp's lanes in every schedule
# Lanes 0 to 15 store to shared memory, after a loop that makes ptxas branch; the others get what they stored.
LOOP = """mov.u32 %r3, 0; NAME: st.volatile.global.u32 [%l1+512], %r3; add.u32 %r3, %r3, 1;
setp.lt.u32 %p2, %r3, %t; @%p2 bra NAME;"""
READ = NEIGHBOR.replace("DISTANCE", "16").replace("ld.shared", "ld.volatile.shared")
WRITE = "st.volatile.shared.u32 [%l3], %t;"
PARTED = f"{OWN} {OWN_SHARED} setp.lt.u32 %p1, %t, 16; mov.u32 %r2, 0; @%p1 bra LOW;"
READ_ONLY = f"""{OWN} atom.global.add.u32 %r1, [%l1], 7; mul.wide.u32 %l2, %r1, 4; add.u64 %l2, %l1, %l2;
ld.global.nc.u32 %r1, [%l2]; st.global.u32 [%l1+512], %r1;"""
SHUFFLE = f"{OWN} shfl.sync.bfly.b32 %r1, %t, 1, 31, MASK; st.global.u32 [%l1], %r1;"
# Lanes from 8 on do not exist: of the sums of lanes 0 to 7, in %r1, only that of lane 0 has no unspecified part.
EIGHT = f"{OWN} add.u32 %r1, %t, 1;" + "".join(
    f"shfl.sync.down.b32 %r2, %r1, {distance}, 31, -1; add.u32 %r1, %r1, %r2;" for distance in (4, 2, 1)
)
# ptxas branches around so many instructions, and lets lanes reconverge behind them.
ARITHMETIC = "".join(f"mad.lo.u32 %r1, %r1, %r1, {2 * k + 1}; xor.b32 %r1, %r1, %i;" for k in range(12))
# Lanes below 20 vote in a loop that they leave one by one, each vote among those that are left; INSIDE follows a vote.
VOTES = f"""{OWN} mov.u32 %r4, 0; mov.u32 %r3, %t; setp.ge.u32 %p1, %t, 20; vote.sync.ballot.b32 %r2, !%p1, -1;
@%p1 bra END; NEXT: and.b32 %r1, %r3, 5; setp.eq.u32 %p2, %r1, 4; vote.sync.ballot.b32 %r1, %p2, %r2; INSIDE
popc.b32 %r1, %r1; add.u32 %r4, %r4, %r1; add.u32 %r3, %r3, 16; setp.lt.u32 %p2, %r3, 80;
vote.sync.ballot.b32 %r2, %p2, %r2; @%p2 bra NEXT; END: bar.warp.sync -1; st.global.u32 [%l1], %r4;"""
DIVISION = "cvt.rn.f32.u32 %r5, %r1; cvt.rn.f32.u32 %r6, %t; div.rn.f32 %r5, %r5, %r6; cvt.rzi.u32.f32 %r1, %r5;"
# Accesses to the local array of LOCAL.
PUT, GET = "st.local.u32 [%l4], VALUE;", "ld.local.u32 %r1, [%l4];"
PUT_SUM = PUT.replace("VALUE", "%r1")
ELEMENT = f"{LOCAL} mul.wide.u32 %l3, %t, 4; add.u64 %l4, %l4, %l3;"  # %l4: the address of element %t
LEADER = "setp.ne.u32 %p1, %t, 0; @%p1 exit; st.global.u32 [%l1], %r1;"
# Of 40 threads, thread 32 stores a bit that a lane without a thread would have, and thread 0 reads the word.
UNSPECIFIED_BIT = f"""{OWN} setp.eq.u32 %p1, %t, 0; @%p1 st.volatile.shared.u32 [word], 0; bar.sync 0;
shfl.sync.down.b32 %r2, %t, 8, 31, -1; and.b32 %r2, %r2, 1; xor.b32 %r2, %r2, FLIP; setp.eq.u32 %p2, %t, 32;
@%p2 st.volatile.shared.u32 [word], %r2; @!%p1 exit; ld.volatile.shared.u32 %r3, [word]; st.global.u32 [%l1], %r3;"""
# name: body, grid, block, the rule of the proof or None; beside the kernels of test_order.py
INDEPENDENT = {
    "lanes that are together": (f"{OWN} {OWN_SHARED} {WRITE} {READ} st.global.u32 [%l1], %r2;", 2, 32, None),
    "lanes that have come together": (
        f"{PARTED} bra JOIN; LOW: {LOOP.replace('NAME', 'A')} {WRITE} JOIN: bar.warp.sync -1;"
        f"@%p1 bra END; {READ} END: st.global.u32 [%l1], %r2;", 2, 32, None),
    "a shuffle": (SHUFFLE.replace("MASK", "-1"), 2, 32, None),
    "a sum of eight lanes": (EIGHT + LEADER, 2, 8, None),
    "a sum of eight lanes under a guard": (
        f"{EIGHT} setp.eq.u32 %p1, %t, 0; @%p1 st.global.u32 [%l1], %r1;", 2, 8, None),
    "an unspecified branch around arithmetic": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {ARITHMETIC} END: {LEADER}", 2, 8, None),
    "an unspecified branch around a division": (  # rare divisions are done by a subroutine
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {DIVISION} END: {LEADER}", 2, 8, None),
    "an unspecified value in shared memory": (
        f"{EIGHT} {OWN_SHARED} st.volatile.shared.u32 [%l3], %r1; {LEADER}", 2, 8, None),
    "an unspecified value in shared memory that is overwritten": (
        f"{EIGHT} {OWN_SHARED} st.volatile.shared.u32 [%l3], %r1; bar.sync 0; st.volatile.shared.u32 [%l3], %t;"
        "bar.sync 0; ld.volatile.shared.u32 %r1, [%l3]; st.global.u32 [%l1], %r1;", 2, 8, None),
    "an unspecified half of two words in shared memory": (
        f"{EIGHT} {OWN_SHARED} shl.b64 %l4, %l3, 1; sub.u64 %l4, %l4, %l2; mov.b64 %l5, {{%r1, 7}};"
        "st.volatile.shared.u64 [%l4], %l5; bar.sync 0; ld.volatile.shared.u32 %r2, [%l4+4];"
        "st.global.u32 [%l1], %r2;", 2, 8, None),
    "an unspecified value in a local variable": (
        f"{LOCAL}{EIGHT} {PUT_SUM} add.u32 %r1, %r1, 7; st.local.u32 [%l4+4], %r1; {GET} {LEADER}", 2, 8, None),
    "an unspecified value in a local variable that is overwritten": (
        f"{LOCAL}{EIGHT} {PUT_SUM} {PUT.replace('VALUE', '%t')} {GET} st.global.u32 [%l1], %r1;", 2, 8, None),
    "an unspecified branch around a local variable": (
        f"{LOCAL}{EIGHT} {PUT_SUM} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {PUT_SUM} st.local.u32 [%l4+4], 7; {GET}"
        f"{ARITHMETIC} {PUT_SUM} END: {LEADER}", 2, 8, None),
    "a local variable under an unspecified guard": (
        f"{LOCAL}{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 {PUT.replace('VALUE', '5')} setp.eq.u32 %p1, %t, 0;"
        f"@!%p1 {GET} @%p1 st.global.u32 [%l1], %r1;", 2, 8, None),
    "an unspecified branch around an element of a local array": (
        f"{ELEMENT}{EIGHT} {PUT_SUM} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {ARITHMETIC} {PUT_SUM}"
        f"END: {PUT.replace('VALUE', '%t')} {GET} st.global.u32 [%l1], %r1;", 2, 8, None),
    "an unwritten local variable that is not used": (
        f"{LOCAL}{OWN} {GET} add.u32 %r1, %r1, %t; setp.lt.u32 %p1, %t, 4; @%p1 mov.u32 %r1, %t;"
        "@%p1 st.global.u32 [%l1], %r1;", 2, 8, None),
    "a subroutine while a value is unspecified": (f"{EIGHT} call store_some, (%l1, 3); {LEADER}", 2, 8, None),
    "an unspecified value that is overwritten": (
        f"{EIGHT} setp.ne.u32 %p1, %t, 0; @%p1 mov.u32 %r1, %t; st.global.u32 [%l1], %r1;", 2, 8, None),
    "a sum of doubles of eight lanes": (
        f"{OWN} cvt.rn.f64.u32 %l5, %t; mov.b64 {{%r1, %r2}}, %l5; shfl.sync.down.b32 %r3, %r1, 4, 31, -1;"
        "shfl.sync.down.b32 %r4, %r2, 4, 31, -1; mov.b64 %l6, {%r3, %r4}; add.f64 %l5, %l5, %l6;"
        "cvt.rzi.u32.f64 %r1, %l5; setp.lt.u32 %p1, %t, 4; @%p1 st.global.u32 [%l1], %r1;", 2, 8, None),
    "an unwritten word that is not used": (
        f"{OWN} {OWN_SHARED} setp.lt.u32 %p1, %t, 16; @%p1 st.volatile.shared.u32 [%l3], %t;"
        "ld.volatile.shared.u32 %r1, [%l3]; add.u32 %r1, %r1, 5; @%p1 st.global.u32 [%l1], %r1;", 2, 32, None),
    "an atomic that the leader does for all": (f"{P0} atom.global.add.u32 %r1, [%l0], 3;", 4, 64, "commuting"),
    "a double in shared memory": (  # a loop of compare-and-swap, whose success fills two registers
        f"{P0} mov.u64 %l1, word; mov.b64 %l2, 0d7FF8000000000001; st.volatile.shared.u64 [%l1], %l2;"
        "mov.b64 %l3, 0d3FF8000000000000; atom.shared.add.f64 %l4, [%l1], %l3; st.global.u64 [%l0], %l4;",
        1, 1, None),
    "votes of those that are left in a loop": (VOTES.replace("INSIDE", ""), 2, 32, None),
    "a reduction of the lanes of a branch": (
        f"{PARTED} {LOOP.replace('NAME', 'A')} bra END; LOW: {LOOP.replace('NAME', 'B')} and.b32 %r1, %t, 3;"
        "redux.sync.or.b32 %r2, %r1, 0xffff; END: st.global.u32 [%l1], %r2;", 1, 32, None),
    "a vote of all": (f"{OWN} setp.lt.u32 %p1, %t, 5; vote.sync.ballot.b32 %r1, %p1, -1;"
                      "st.global.u32 [%l1], %r1;", 2, 32, None),
}  # fmt: skip
# name: body, grid, block, the reason why it is not proved
DEPENDENT = {
    "lanes that have parted": (
        f"{PARTED} {LOOP.replace('NAME', 'A')} {READ} bra END; LOW: {LOOP.replace('NAME', 'B')} {WRITE}"
        "END: st.global.u32 [%l1], %r2;", 1, 32, "race"),
    "an unspecified bit beside a read": (UNSPECIFIED_BIT.replace("FLIP", "0"), 1, 40, "race"),
    "a flipped unspecified bit beside a read": (UNSPECIFIED_BIT.replace("FLIP", "1"), 1, 40, "race"),
    "lanes of two warps": (f"{OWN} {OWN_SHARED} {WRITE} {READ.replace('16', '32')} st.global.u32 [%l1], %r2;",
                           1, 64, "race"),
    "who is active in a branch": (f"{OWN} setp.lt.u32 %p1, %t, 16; mov.u32 %r1, 0; @%p1 bra LOW; "
                                  f"{LOOP.replace('NAME', 'A')} bra END; LOW: {LOOP.replace('NAME', 'B')}"
                                  "activemask.b32 %r1; END: st.global.u32 [%l1], %r1;", 1, 32, "active_lanes"),
    "who is active under a guard after a vote": (
        VOTES.replace("INSIDE", "@!%p2 bra SKIP; activemask.b32 %r1; st.volatile.global.u32 [%l1+512], %r1; SKIP:"),
        2, 32, "active_lanes"),
    "who is active in a branch after a reduction": (
        f"{PARTED} {LOOP.replace('NAME', 'A')} bra END; LOW: and.b32 %r1, %t, 3; redux.sync.or.b32 %r2, %r1, 0xffff;"
        f"setp.ne.u32 %p1, %r1, 1; @%p1 bra END; {LOOP.replace('NAME', 'B')} activemask.b32 %r2;"
        "END: st.global.u32 [%l1], %r2;", 1, 32, "active_lanes"),
    "a lane that takes no part": (f"setp.gt.u32 %p1, %t, 20; @%p1 exit; {SHUFFLE.replace('1, 31', '16, 31')}"
                                  .replace("MASK", "-1"), 1, 32, "inactive_lane"),
    "an unspecified sum": (f"{EIGHT} st.global.u32 [%l1], %r1;", 2, 8, "inactive_lane"),
    "an unspecified address": (
        f"{EIGHT} and.b32 %r1, %r1, 7; mul.wide.u32 %l2, %r1, 4; add.u64 %l2, %l0, %l2;"
        "ld.volatile.global.u32 %r2, [%l2];"
        + LEADER.replace("%r1", "%r2"), 2, 8, "inactive_lane"),
    "an unspecified value from shared memory": (
        f"{EIGHT} {OWN_SHARED} st.volatile.shared.u32 [%l3], %r1; ld.volatile.shared.u32 %r1, [%l3];"
        "st.global.u32 [%l1], %r1;", 2, 8, "uninitialized"),
    "an unspecified value of a neighbor": (
        f"{EIGHT} {OWN_SHARED} st.volatile.shared.u32 [%l3], %r1; bar.sync 0;"
        f"{NEIGHBOR.replace('DISTANCE', '1').replace('ld.shared', 'ld.volatile.shared')} bar.sync 0;"
        "st.global.u32 [%l1], %r2;", 2, 8, "uninitialized"),
    "an unspecified value and others in one word of shared memory": (
        f"{EIGHT} {OWN_SHARED} setp.eq.u32 %p1, %t, 0; @%p1 mov.u32 %r1, 5; st.volatile.shared.u32 [word], %r1;"
        f"bar.sync 0; ld.volatile.shared.u32 %r1, [word]; {LEADER}", 2, 8, "race"),
    "an unspecified address in shared memory": (
        f"{EIGHT} {OWN_SHARED} and.b32 %r1, %r1, 7; mul.wide.u32 %l3, %r1, 4; add.u64 %l3, %l2, %l3;"
        f"st.volatile.shared.u32 [%l3], %t; {LEADER}", 2, 8, "inactive_lane"),
    "an unspecified value in global memory": (f"{EIGHT} st.volatile.global.u32 [%l1+512], %r1; {LEADER}", 2, 8,
                                              "inactive_lane"),
    "an unspecified value from a local variable": (
        f"{LOCAL}{EIGHT} {PUT_SUM} mov.u32 %r1, %t; {GET} st.global.u32 [%l1], %r1;", 2, 8, "inactive_lane"),
    "an unspecified value from a local variable by a generic address": (
        f"{LOCAL}{EIGHT} {PUT_SUM} cvta.local.u64 %l2, %l4; ld.volatile.u32 %r1, [%l2];"
        "st.global.u32 [%l1], %r1;", 2, 8, "inactive_lane"),
    "a local variable that an unspecified branch assigns": (
        f"{LOCAL}{EIGHT} {PUT.replace('VALUE', '%t')} setp.gt.u32 %p2, %r1, 1000; mov.u32 %r2, %t; @%p2 bra END;"
        f"{ARITHMETIC.replace('%r1', '%r2')} {PUT.replace('VALUE', '%r2')} END: {GET} st.global.u32 [%l1], %r1;",
        2, 8, "inactive_lane"),
    "a local variable that an unspecified guard assigns": (
        f"{LOCAL}{EIGHT} {PUT.replace('VALUE', '%t')} setp.gt.u32 %p2, %r1, 1000; @%p2 {PUT.replace('VALUE', '5')}"
        f"{GET} st.global.u32 [%l1], %r1;", 2, 8, "inactive_lane"),
    "an element of a local array that an unspecified branch assigns": (
        f"{ELEMENT}{EIGHT} {PUT.replace('VALUE', '%t')} setp.gt.u32 %p2, %r1, 9; mov.u32 %r2, %t; @%p2 bra END;"
        f"{ARITHMETIC.replace('%r1', '%r2')} {PUT.replace('VALUE', '%r2')} END: {GET} st.global.u32 [%l1], %r1;",
        2, 8, "inactive_lane"),
    "an unspecified index of a local array": (
        f"{LOCAL}{EIGHT} and.b32 %r1, %r1, 7; mul.wide.u32 %l3, %r1, 4; add.u64 %l2, %l4, %l3;"
        f"st.local.u32 [%l2], %t; {GET} {LEADER}", 2, 8, "inactive_lane"),
    "an unspecified branch around an index of a local array": (
        f"{LOCAL}{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {ARITHMETIC} and.b32 %r1, %r1, 7;"
        f"mul.wide.u32 %l3, %r1, 4; add.u64 %l2, %l4, %l3; st.local.u32 [%l2], %t; END: {LEADER}",
        2, 8, "inactive_lane"),
    "an unspecified branch": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra MORE; bra LESS; MORE: {LOOP.replace('NAME', 'A')} LESS: {LEADER}",
        2, 8, "inactive_lane"),
    "a result of an unspecified branch": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; mov.u32 %r1, 5; @%p2 bra END; {ARITHMETIC} END: st.global.u32 [%l1], %r1;",
        2, 8, "inactive_lane"),
    "a quotient of an unspecified branch": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; mov.u32 %r1, 5; @%p2 bra END; {DIVISION} END: st.global.u32 [%l1], %r1;",
        2, 8, "inactive_lane"),
    "an unspecified branch around a call that stores": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; call store_some, (%l1, %t); {ARITHMETIC} END: {LEADER}",
        2, 8, "inactive_lane"),
    "what an unspecified branch assigns": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 1000; mov.u32 %r2, 5; @%p2 bra END; mad.lo.u32 %r2, %t, %t, 1;"
        f"{ARITHMETIC.replace('%r1', '%r2')} END: st.global.u32 [%l1], %r2;", 2, 8, "inactive_lane"),
    "an unspecified branch around a store": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {ARITHMETIC} st.volatile.global.u32 [%l1+512], %t;"
        f"END: {LEADER}",
        2, 8, "inactive_lane"),
    "an unspecified branch around a shuffle": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 bra END; {ARITHMETIC} shfl.sync.idx.b32 %r1, %t, 0, 31, 255;"
        f"END: {LEADER}",
        2, 8, "inactive_lane"),
    "an unspecified guard": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; @%p2 st.global.u32 [%l1+512], %t; {LEADER}", 2, 8, "inactive_lane"),
    "an unspecified choice": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; selp.u32 %r1, %t, 7, %p2; st.global.u32 [%l1], %r1;", 2, 8, "inactive_lane"),
    "an unspecified vote": (
        f"{EIGHT} setp.gt.u32 %p2, %r1, 9; vote.sync.ballot.b32 %r1, %p2, 255; {LEADER}", 2, 8, "inactive_lane"),
    "an unspecified value from another lane": (
        f"{EIGHT} shfl.sync.idx.b32 %r1, %r1, 5, 31, -1; {LEADER}", 2, 8, "inactive_lane"),
    "an unspecified distance": (
        f"{EIGHT} and.b32 %r2, %r1, 7; shfl.sync.idx.b32 %r1, %t, %r2, 31, -1; st.global.u32 [%l1], %r1;",
        2, 8, "inactive_lane"),
    "an unspecified half of a double": (
        f"{EIGHT} mov.b64 %l5, {{%r1, 1072693248}}; add.f64 %l5, %l5, %l5; mov.b64 {{%r2, %r3}}, %l5;"
        "st.global.u32 [%l1], %r2;", 2, 8, "inactive_lane"),
    "an unspecified value that one lane overwrites": (
        f"{EIGHT} setp.eq.u32 %p1, %t, 0; @%p1 ld.volatile.global.u32 %r1, [%l1]; st.global.u32 [%l1], %r1;",
        2, 8, "inactive_lane"),
    "an unspecified operand of an atomic": (f"{EIGHT} red.global.add.u32 [%l0], %r1;", 2, 8, "inactive_lane"),
    "an unwritten word": (f"{OWN} {OWN_SHARED} ld.volatile.shared.u32 %r1, [%l3]; add.u32 %r1, %r1, %t;"
                          "st.global.u32 [%l1], %r1;", 2, 32, "uninitialized"),
    "a cache that does not see it": (READ_ONLY, 1, 32, "stale_read"),
}  # fmt: skip


# What is proved of machine code alone: there lanes run in lockstep and reconverge at known instructions, halves of 8
# bytes are registers of their own, and ptxas has put called functions into their callers.
NOT_PROVED_AS_PTX = {
    "lanes that are together",
    "an unspecified branch around arithmetic",
    "an unspecified branch around a division",
    "an unspecified half of two words in shared memory",
    "an unspecified branch around a local variable",
    "a local variable under an unspecified guard",
    "an unspecified branch around an element of a local array",
    "a subroutine while a value is unspecified",
}


def select_supported(kernels):
    return {name: kernel for name, kernel in kernels.items() if name not in NOT_RECOGNIZED | LOCKSTEP}


ALL_INDEPENDENT = {**select_supported(test_order.INDEPENDENT), **INDEPENDENT}
ALL_DEPENDENT = {**DEPENDENT, **select_supported(test_order.DEPENDENT)}
CHECKED = {**ALL_INDEPENDENT, **ALL_DEPENDENT}  # "a fault" of test_order.py comes last: it ends the context


def entry(name):
    return "k_" + re.sub(r"\W+", "_", name)


def text():
    kernels = "".join(
        f""".visible .entry {entry(name)}(.param .b64 p0) {{
{SCRATCH}.reg .b32 %i, %t;
mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %r0, %ntid.x; mad.lo.u32 %i, %i, %r0, %t;
{body}
}}
"""
        for name, (body, *_) in CHECKED.items()
    )
    return HEAD + kernels


if __name__ == "__main__":
    TEXT.write_text(text(), "utf-8")
