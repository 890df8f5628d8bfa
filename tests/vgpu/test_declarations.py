"""Declarations and forms of instructions that ptxas accepts or refuses; the device does the same."""

import mutants
import numpy as np
import pytest
from virtual_device import HEAD, kernel

LOOP = "{{ AGAIN: add.u32 {0}, {0}, 1; setp.lt.u32 %p1, {0}, {1}; @%p1 bra AGAIN; }}"
TABLE = """{{ CASES: .branchtargets A, B; mov.u32 %r1, 1; brx.idx %r1, CASES;
A: mov.u32 {0}, 7; bra DONE; B: mov.u32 {0}, {1}; DONE: }}"""


@pytest.mark.parametrize("block", [LOOP, TABLE])
def test_a_label_belongs_to_its_scope(device, block):
    """Inline assembly has labels in a scope of their own for each use."""
    body = "mov.u32 %r2, 0; mov.u32 %r3, 0;" + block.format("%r2", 3) + block.format("%r3", 5)
    body += "shl.b32 %r3, %r3, 8; or.b32 %d, %r2, %r3;"
    assert device.evaluate(body, [np.uint32], np.zeros(4, np.uint32)).tolist() == [3 | 5 << 8] * 4


@pytest.mark.parametrize(
    "body",
    [
        "bra OUT; { bra OUT; } OUT: ret;",
        "{ bra IN; IN: } ret;",
        "{ .reg .b32 %r1; { .reg .b64 %r1; mov.b64 %r1, 0; } mov.b32 %r1, 0; } ret;",
        '.pragma "nounroll"; .pragma "nounroll", "enable_smem_spilling"; ret;',
        ".shared .align 4 .b8 much[49152]; st.shared.u32 [much], 0; ret;",
        "mov.f64 %l0, 1e308; ret;",
        "mov.f32 %r1, (1.5)*2.0; mov.u32 %r1, (2+3)*4; mov.u32 %r1, ((5)); mov.u32 %r1, 5 + -(1); ret;",
        "ld.param.u64 %l0, [p0+(0)]; ld.param::entry.u64 %l0, [p0]; ret;",
        "setp.eq.u32 _, %r1, %r2; setp.eq.u32 %p1|_, %r1, %r2; setp.eq.u32 _|%p1, %r1, %r2; ret;",
        "shfl.sync.idx.b32 %r1|_, %r1, 1, 31, -1; match.all.sync.b32 _|%p1, %r1, -1; ret;",
        ".shared .u32 s; mov.u16 %h1, s; barrier.cta.sync.aligned 0; setp.eq.and.u32 %p1, %r1, %r2, 1; ret;",
        "mov.u32 %r1, %clock_hi; mov.u64 %l0, %clock64; mov.b16 %h1, %tid.x; ret;",
        "setp.and.eq.u32 %p1, %r1, %r2, %p1; setp.ftz.xor.ltu.f32 %p1, %r1, %r2, %p1; ret;",
        ".local .u32 l; .shared .u32 s; cvta.local.u64 %l0, l; cvta.shared::cta.u64 %l0, s+4; ret;",
        "barrier.sync 0, -4294967296; barrier.aligned.sync 0; barrier.red.aligned.popc.u32 %r1, 0, %p1; ret;",
        "cvta.param.u64 %l0, p0; cvta.to.param.u64 %l0, %l0; cvta.global.u64 %l0, 4; ret;",
    ],
)
def test_texts_that_ptxas_accepts_are_accepted(device, body):
    assert mutants.outcome(device, kernel(body, ["p0"]).encode()) == "ran"


@pytest.mark.parametrize(
    "body",
    [
        "bra L; L: L: ret;",
        "bra IN; { IN: ret; }",
        ".reg .b32 %r1; ret;",
        ".reg .b32 %q; .reg .b64 %q; ret;",
        ".reg .b64 p0; ret;",
        ".pragma nounroll; ret;",
        ".pragma; ret;",
        ".shared .b8 a[40000]; .shared .b8 b[9153]; st.shared.u8 [a], 0; st.shared.u8 [b], 0; ret;",
        "mov.f64 %l0, 1e400; ret;",
        "shfl.down.b32 %r1, %r1, 1, 31; ret;",
        "vote.all.pred %p1, %p2; ret;",
        "st.param.u32 [p0], 5; ret;",
        "mov.u32 %r1, (%r2); ret;",
        "ld.global.u32 %r1, [(%l0)]; ret;",
        "or.pred _, %p1, %p2; ret;",
        "mov.pred _, %p1; ret;",
        "not.pred _, %p1; ret;",
        "vote.sync.any.pred _, %p1, -1; ret;",
        "isspacep.global _, %l0; ret;",
        "bar.red.or.pred _, 0, %p1; ret;",
        "barrier.sync.cta 0; ret;",
        "setp.num.and.bf16 %p1, %h1, %h2, 1; ret;",
        "setp.eq.u32 _|_, %r1, %r2; ret;",
        "mov.b16 %h1, %clock_hi; ret;",
        "mov.f32 %r1, 1.5+1; ret;",
        "mov.f32 %r1, 1e-400; ret;",
        ".shared .u32 s; cvta.global.u64 %l0, s; ret;",
        "cvta.global.u64 %l0, p0; ret;",
        "cvta.global.u64 %l0, k; ret;",
        ".shared .u32 s; cvta.to.shared.u64 %l0, s; ret;",
        "cvta.param.to.u64 %l0, %l0; ret;",
        "barrier.aligned.arrive 0, 32; ret;",
        "barrier.sync 0, -33; ret;",
    ],
)
def test_texts_that_ptxas_refuses_are_refused(device, body):
    assert mutants.outcome(device, kernel(body, ["p0"]).encode()) == "refused"


@pytest.mark.parametrize(
    ("head", "end"),
    [
        (".global .u32 x; .global .u32 x;", "refused"),
        (".global .u32 k;", "refused"),
        (".func f() { ret; } .func f() { ret; }", "refused"),
        (".global .u32 f; .func f() { ret; }", "refused"),
        (".const .b8 c[40000]; .const .b8 d[25537];", "refused"),
        (".const .b8 c[40000]; .const .b8 d[25536];", "ran"),
        (".global .u32 x; .extern .global .u32 x;", "ran"),
        (".func f(); .func f() { ret; }", "ran"),
        (".func (.param .u32 o) f(.param .u32 i) { st.param.u32 [o], 5; ret; }", "ran"),
    ],
)
def test_a_module_defines_each_name_once(device, head, end):
    assert mutants.outcome(device, kernel("ret;", ["p0"], head=head + "\n").encode()) == end


def test_shfl_and_vote_without_sync_run_in_older_ptx(device):
    """shfl and vote without .sync are valid if the PTX version is below 6.4 or the target below sm_70."""
    text = kernel("shfl.down.b32 %r1, %r1, 1, 31; vote.all.pred %p1, %p2; ret;", ["p0"])
    for older in (".version 6.3\n.target sm_70\n", ".version 7.0\n.target sm_60\n"):
        head = older + ".address_size 64\n"
        assert mutants.outcome(device, text.replace(HEAD, head).encode()) == "ran"


@pytest.mark.parametrize(("bytes_behind", "code"), [(32756, 0), (32757, 1)])
def test_a_kernel_has_at_most_32764_bytes_of_parameters(device, bytes_behind, code):
    """As ptxas: .param .b64, and behind it bytes; with an alignment only where it needs some."""
    for alignment in ("", ".align 8 "):
        text = kernel("", ["p0"]).replace(".param .b64 p0", f".param .b64 p0, .param {alignment}.b8 p1[{bytes_behind}]")
        result, module = device.load(text)
        assert bool(result or device.function(module)[0]) == bool(code)
