"""Texts that are no PTX, or no longer quite: an error, never a crash and never a hang."""

import os
import random
import re
import resource
import signal

import numpy as np
import pytest
from virtual_device import HEAD, kernel

VALID = [
    kernel(
        """ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1; ld.global.v2.f32 {%r1, %r2}, [%l0];
    add.rn.f32 %r1, %r1, %r2; setp.lt.and.f32 %p0|%p1, %r1, 0f3F800000, %p2; @!%p0 bra out; cvt.rzi.s32.f32 %r3, %r1;
    shfl.sync.bfly.b32 %r4|%p3, %r3, 1, 31, 0xffffffff; vote.sync.ballot.b32 %r5, %p3, -1; bar.sync 0;
    out: st.global.u32 [%l0+4], %r1;""",
        ["p0"],
    ),
    kernel(
        """.shared .align 8 .b8 s[64]; .local .align 4 .b8 own[16]; mov.u32 %r1, s; st.shared.u32 [%r1+4], %i;
    atom.shared.cas.b32 %r2, [s], 0, 1; red.global.add.f32 [total], 0f3F800000; mov.b64 {%r3, %r4}, %l0;
    cvta.local.u64 %l1, %l2;
    bfe.u32 %r5, %r1, 3, 4; prmt.b32 %r6, %r1, %r2, 0x3210; lop3.b32 %r6, %r1, %r2, %r3, 0x96;
    bar.red.or.pred %p1, 0, %p2;""",
        ["p0"],
        head=".global .align 4 .f32 total = 0f00000000;\n.const .align 4 .u32 table[3] = {1, 2, 3};\n",
    ),
    kernel(
        """{ .param .b32 a; .param .b32 b; st.param.b32 [a], %i; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
    targets: .branchtargets one, two; and.b32 %r2, %i, 1; brx.idx %r2, targets; one: mad.lo.s32 %r1, %r1, 3, 1;
    two: ret;""",
        ["p0"],
        head=".func (.param .b32 out) twice(.param .b32 in)\n{ .reg .b32 %a; ld.param.b32 %a, [in]; add.u32 %a, %a, %a;"
        " st.param.b32 [out], %a; ret; }\n",
    ),
]
NASTY = (
    "; { } [ ] ( ) , | ! - @ : [[ {} %r1 %p1 %l0 _ 0 -1 0x 0f3F 7.5 4294967296 99999999999999999999 .align .shared "
    '.b128 .pred [1073741824] <1073741824> \0 \x80 " /* // s a p0 total {%r1} %tid.x WARP_SZ .v4 .f16x2 exit call '
)


def mutated(seed):
    """A valid text with one to four of its words left out, doubled, exchanged or replaced, or with an end too soon."""
    draw = random.Random(seed)
    text = draw.choice(VALID)
    words = re.findall(r"[\w.%$]+|\s+|.", text[len(HEAD) :], re.S)
    for _ in range(draw.randint(1, 4)):
        at, other = draw.randrange(len(words)), draw.randrange(len(words))
        way = draw.randrange(6)
        if way == 0:
            words[at] = ""
        elif way == 1:
            words[at] += words[at]
        elif way == 2:
            words[at], words[other] = words[other], words[at]
        elif way == 3:
            words[at] = draw.choice(NASTY.split(" "))
        elif way == 4:
            words[at] = words[at][:-1] + chr(draw.randint(1, 255))
        elif draw.random() < 0.3:
            words = words[: at + 1]
    return HEAD + "".join(words)


def ends(device, text):
    """CUDA's result of loading and running it, from a child that may die; what killed it where something did."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(60)
            code = 1 if device.run(text, [np.zeros(8192, np.uint32)] * 48, 2, 64)[0] else 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), f"signal {os.WTERMSIG(status)} for\n{text}"
    return os.WEXITSTATUS(status)


def test_valid_texts_run(device):
    assert [ends(device, text) for text in VALID] == [0, 0, 0]


@pytest.mark.parametrize("part", range(8))
def test_mutations_end_in_an_error_or_run(device, part):
    codes = [ends(device, mutated(seed)) for seed in range(100 * part, 100 * part + 100)]
    assert codes.count(1) > 20


BODIES = {
    "operands that are missing": "bar.sync;",
    "no mask": "bar.warp.sync;",
    "no predicate": "bar.red.popc.u32 %r1, 0;",
    "one of two predicates": "setp.eq.u32 {%p1}, %r1, %r2;",
    "a list without end": "mov.b64 %l0, {%r1, %r2;",
    "no old value": "atom.global.cas.b32 %r1, [%l0], 1;",
    "an empty list": "mov.b64 %l0, {};",
    "an address in one": "ld.u32 %r1, [[%l0]];",
    "too much shared memory": ".shared .b8 s[1000000000];",
    "too much local memory": ".local .b8 s[1000000000];",
    "too many registers": ".reg .b64 %big<1000000000>;",
    "no label": "bra nowhere;",
    "no table": "brx.idx %r1, nowhere;",
    "an unknown function": "call.uni f, ();",
    "another argument": "call.uni f, (area);",
    "an unknown operand": "add.u32 %r1, %q, 1;",
    "a predicate as a number": "add.u32 %r1, %p1, 1;",
    "a register too narrow": "add.u64 %l0, %r1, %l0;",
    "depth": "ld.u32 %r1, " + "[" * 99999,
}
HEADS = {
    "an initial value of shared memory": ".shared .align 4 .b32 x = 5;",
    "too many values": ".global .b32 x[2] = {1, 2, 3};",
    "a type of 16 bytes": ".global .b128 x = 5;",
    "an unknown variable's address": ".global .u64 x = y;",
    "no end": ".global .b32 x[",
    "no name": ".global .b32",
    "a body that is open": ".func f() { ret;",
    "too many parameters": ".visible .entry huge(.param .b8 x[1000000]) { ret; }",
    "what is called is refused": ".func f() { bogus; }",
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(device, name):
    head = ".func f(.param .b32 x)\n{ ret; }\n.extern .shared .align 4 .b8 area[];\n"
    assert ends(device, kernel(BODIES[name], ["p0"], head=head)) == 1


@pytest.mark.parametrize("name", HEADS)
def test_heads(device, name):
    calls = "call.uni f, ();" if "called" in name else ""
    assert ends(device, kernel(calls, ["p0"], head=HEADS[name] + "\n")) == 1


def test_what_is_declared_first_has_the_size_of_its_definition(device):
    head = ".extern .global .align 4 .b32 x[];\n.global .align 4 .b32 x[3000] = {" + ", ".join(["7"] * 3000) + "};\n"
    made = device.results("ld.global.u32 %d, [x+11996];", [np.uint32], np.zeros(4, np.uint32), head=head)
    assert made.tolist() == [7] * 4


def test_unwanted_elements_of_a_vector(device):
    x = np.arange(8, dtype=np.uint32)
    text = kernel(
        "ld.param.u64 %l0, [p0]; ld.global.v4.u32 {_, %r1, _, %r2}, [%l0]; st.global.v2.u32 [%l0+16], {%r2, %r1};",
        ["p0"],
    )
    code, (made,) = device.run(text, [x], 1, 1)
    assert (code, made.tolist()) == (0, [0, 1, 2, 3, 3, 1, 6, 7])
