"""Invalid and damaged PTX ends in an error: it neither crashes the process nor hangs."""

import os
import subprocess
import sys
from pathlib import Path

import mutants
import numpy as np
import pytest
from virtual_device import HEAD, kernel

MUTANTS = int(os.environ.get("VGPU_MUTANTS", "1000"))  # 5000 before a release


def is_rejected(device, text):
    """Return whether loading or launching returns an error; raise KeyError if the process is killed."""
    return {"refused": True, "ran": False}[mutants.outcome(device, text.encode())]


def test_valid_texts_and_containers_run(device):
    forms = [text.encode() for text in mutants.VALID]
    forms += [mutants.container(text, compresses) for text in forms for compresses in (False, True)]
    assert [mutants.outcome(device, form) for form in forms] == ["ran"] * 12


def test_mutations_end_in_an_error_or_run(device):
    """No text or container kills the process, reads beyond its end, takes gigabytes or hangs."""
    command = [sys.executable, str(Path(mutants.__file__)), "0", str(MUTANTS)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "ran" in process.stdout


NO_BINARY, OUT_OF_RESOURCES, INVALID_VALUE = 209, 701, 1
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
    "an argument's address": "{ .param .b64 n; mov.u64 %l0, n; }",
    "an argument's generic address": "{ .param .b64 n; cvta.param.u64 %l0, n; }",
    "an argument's address in 32 bits": "{ .param .b64 n; mov.u32 %r1, n; }",
    "an unknown operand": "add.u32 %r1, %q, 1;",
    "a predicate as a number": "add.u32 %r1, %p1, 1;",
    "a register too narrow": "add.u64 %l0, %r1, %l0;",
    "depth": "ld.u32 %r1, " + "[" * 99999,
    "a list without end that is long": "add.u32 %r1" + "|%r1" * 99999 + ", 1;",
    "more registers than there are": ".reg .b32 %q<4000000000>;",
    "a number that is none": "add.u32 %r1, %r1, 99999999999999999999;",
    "bits of half a float": "mov.f32 %r1, 0f3F;",
}
HEADS = {
    "an initial value of shared memory": ".shared .align 4 .b32 x = 5;",
    "too many values": ".global .b32 x[2] = {1, 2, 3};",
    "an unknown variable's address": ".global .u64 x = y;",
    "no end": ".global .b32 x[",
    "no name": ".global .b32",
    "a body that is open": ".func f() { ret;",
    "too many parameters": ".visible .entry huge(.param .b8 x[1000000]) { ret; }",
    "what is called is refused": ".func f() { bogus; }",
}


# An unknown modifier, one that excludes another, one that does not fit the operands, or a missing one.
INVALID_STATEMENTS = [
    *(
        "add.bogus.u32 %r1, %r1, 1;",
        "add.rn.rz.f32 %r1, %r1, %r1;",
        "add.wide.s32 %l0, %r1, %r1;",
        "and.sat.b32 %r1, %r1, 1;",
    ),
    *("add.f32.s32 %r1, %r1, 1;", "mul.u32 %r1, %r1, 3;", "mul.lo.hi.u32 %r1, %r1, 3;", "mul24.u32 %r1, %r1, 3;"),
    *(
        "shl.lo.b32 %r1, %r1, 1;",
        "min.rn.s32 %r1, %r1, 1;",
        "neg.sat.s32 %r1, %r1;",
        "dp4a.lo.u32.u32 %r1, %r1, %r1, %r1;",
    ),
    *("sin.rn.f32 %r1, %r1;", "neg.sat.f32 %r1, %r1;", "max.xorsign.f32 %r1, %r1, %r1;", "testp.f32 %p1, %r1;"),
    *("fma.rn.relu.oob.f16 %h1, %h1, %h1, %h1;", "tanh.approx.sat.f16 %h1, %h1;", "copysign.ftz.f32 %r1, %r1, %r1;"),
    *(
        "setp.f32 %p1, %r1, %r1;",
        "setp.lt.gt.f32 %p1, %r1, %r1;",
        "setp.lt.and.s32 %p1, %r1, %r1;",
        "setp.lt.sat.s32 %p1, %r1, %r1;",
    ),
    *("selp.ftz.f32 %r1, %r1, %r1, %p1;", "slct.rn.f32.s32 %r1, %r1, %r1, %r1;", "set.lt.f32 %r1, %r1, %r1;"),
    *("cvt.rn.rz.f32.f64 %r1, %l1;", "cvt.u32 %r1, %r1;", "cvt.rn.satfinite.f16.f64 %h1, %l1;"),
    *(
        "popc.sat.b32 %r1, %r1;",
        "clz.shiftamt.b32 %r1, %r1;",
        "prmt.b32.f9e %r1, %r1, %r1, 1;",
        "shf.wrap.b32 %r1, %r1, %r1, 1;",
    ),
    *(
        "shf.l.b32 %r1, %r1, %r1, 1;",
        "lop3.or.b32 %r1, %r1, %r1, %r1, 1;",
        "bfe.sat.u32 %r1, %r1, 1, 1;",
        "add.cc.lo.u32 %r1, %r1, 1;",
    ),
    *(
        "mov.rn.u32 %r1, 1;",
        "mov.v2.u32 %r1, 1;",
        "cvta.bogus.u64 %l1, %l1;",
        "isspacep.shared::cluster %p1, %l1;",
        "isspacep %p1, %l1;",
    ),
    *("ld.bogus.global.u32 %r1, [%l0];", "ld.global.shared.u32 %r1, [%l0];", "ld.global.v2.u32 %r1, [%l0];"),
    *(
        "ld.global.u32 {%r1, %r2}, [%l0];",
        "ld.global.v2.u32 {%r1, %r2, %r3}, [%l0];",
        "ld.shared::cluster.u32 %r1, [%l0];",
    ),
    *(
        "st.global.bogus.u32 [%l0], %r1;",
        "st.async.u32 [%l0], %r1;",
        "ld.global.u32 %r1, [%l0], %l1;",
        "st.global.v4.u32 [%l0], %r1;",
    ),
    *(
        "atom.global.bogus.add.u32 %r1, [%l0], 1;",
        "atom.global.add.min.u32 %r1, [%l0], 1;",
        "atom.add.u32 %r1, [%l0], 1, 2;",
    ),
    *(
        "atom.shared::cluster.add.u32 %r1, [%l0], 1;",
        "red.async.add.u32 [%l0], 1;",
        "atom.local.add.u32 %r1, [%l0], 1;",
    ),
    *(
        "shfl.sync.b32 %r1, %r1, 1, 31, -1;",
        "shfl.sync.bogus.b32 %r1, %r1, 1, 31, -1;",
        "shfl.sync.up.b32 %r1, %r1, 1, 31;",
    ),
    *("shfl.sync.up.down.b32 %r1, %r1, 1, 31, -1;", "shfl.up.b32 %r1, %r1, 1, 31, -1;", "vote.sync.b32 %r1, %p1, -1;"),
    *("vote.sync.ballot.pred %p1, %p1, -1;", "vote.sync.any.pred %p1, %p1;", "match.sync.b32 %r1, %r1, -1;"),
    *("redux.sync.bogus.u32 %r1, %r1, -1;", "activemask.sync.b32 %r1;", "elect.sync.b32 %r1|%p1, -1;"),
    *("bar.bogus 0;", "bar.sync.arrive 0;", "bar.red.u32 %r1, 0, %p1;", "bar.sync.popc 0;", "barrier.cluster.arrive;"),
    *(
        "bar 0;",
        "bar.warp.bogus -1;",
        "bra.bogus out; out:",
        "brx out, out; out:",
        "ret.bogus;",
        "exit.uni.idx;",
        "trap.b32;",
    ),
    *(
        "dp4a.u32.u32 %r1, %r1, %r1, 0f3F800000;",
        "dp2a.lo.u32.u32 %r1, 0f3F800000, %r1, %r1;",
        "shf.l.wrap.b32 %r1, %r1, %r1, 0f3F800000;",
        "szext.wrap.u32 %r1, %r1, 0f3F800000;",
        "bmsk.wrap.b32 %r1, 0f3F800000, %r1;",
    ),
    *(
        "red.acq_rel.gpu.global.add.u32 [%l0], 1;",
        "red.acquire.gpu.global.add.u32 [%l0], 1;",
        "match.any.sync.b32 %r1|%p1, %r1, -1;",
        "pmevent 16;",
        "pmevent %r1;",
        "{ .param .b64 a; st.param.b64 [a], %l1; call g, (a); }",
    ),
    *("call.bogus f, ();", "nanosleep 20;", "fence.bogus;", "membar.bogus;", "griddepcontrol.bogus;"),
]


def decode_result(device, statement):
    """Return CUDA's result for a kernel with this statement."""
    result, module = device.load(
        kernel(statement, ["p0"], head=".func f()\n{ ret; }\n.func g(.param .b32 a)\n{ ret; }\n")
    )
    return result or device.function(module)[0]


@pytest.mark.parametrize("statement", INVALID_STATEMENTS)
def test_unknown_modifiers_are_rejected(device, statement):
    """An ignored modifier would run another instruction."""
    assert decode_result(device, statement) == NO_BINARY


VALID_STATEMENTS = [
    *("ld.relaxed.gpu.global.L1::no_allocate.u32 %r1, [%l0];", "ld.global.nc.L2::cache_hint.u32 %r1, [%l0], %l1;"),
    *("st.release.sys.global.u32 [%l0], %r1;", "ld.volatile.global.v4.u32 {%r1, %r2, %r3, %r4}, [%l0];"),
    *("atom.acq_rel.gpu.global.cas.b32 %r1, [%l0], %r1, %r2;", "red.relaxed.sys.global.add.noftz.f16x2 [%l0], %r1;"),
    *(
        "fence.acq_rel.gpu;",
        "fence.sc.cta;",
        "membar.sys;",
        "barrier.sync.aligned 0;",
        "bar.cta.red.and.pred %p1, 0, %p2;",
    ),
    *(
        "griddepcontrol.wait;",
        "prefetch.global.L2 [%l0];",
        "call f, ();",
        "cvt.rn.relu.f16.f32 %h1, %r1;",
        "elect.sync _|%p1, -1;",
    ),
    *(
        "red.release.gpu.global.add.u32 [%l0], 1;",
        "match.all.sync.b32 %r1|%p1, %r1, -1;",
        "pmevent 15;",
        "createpolicy.fractional.L2::evict_last.b64 %l1, 1.0;",
        "{ .param .f32 a; st.param.f32 [a], %r1; call g, (a); }",
    ),
    *(".reg.b32 %q; mov.b32 %q, 1;", "max.ftz.NaN.f32 %r1, %r1, %r2;", "mad.hi.cc.u32 %r1, %r1, %r1, %r1;"),
]


@pytest.mark.parametrize("statement", VALID_STATEMENTS)
def test_modifiers_without_effect_are_accepted(device, statement):
    assert decode_result(device, statement) == 0


@pytest.mark.parametrize("name", BODIES)
def test_invalid_kernel_bodies_return_errors(device, name):
    head = ".func f(.param .b32 x)\n{ ret; }\n.extern .shared .align 4 .b8 area[];\n"
    assert is_rejected(device, kernel(BODIES[name], ["p0"], head=head))


@pytest.mark.parametrize("name", HEADS)
def test_invalid_declarations_return_errors(device, name):
    calls = "call.uni f, ();" if "called" in name else ""
    assert is_rejected(device, kernel(calls, ["p0"], head=HEADS[name] + "\n"))


def test_a_forward_declaration_has_the_size_of_its_definition(device):
    head = ".extern .global .align 4 .b32 x[];\n.global .align 4 .b32 x[3000] = {" + ", ".join(["7"] * 3000) + "};\n"
    result = device.evaluate("ld.global.u32 %d, [x+11996];", [np.uint32], np.zeros(4, np.uint32), head=head)
    assert result.tolist() == [7] * 4


def test_unwanted_elements_of_a_vector(device):
    x = np.arange(8, dtype=np.uint32)
    text = kernel(
        "ld.param.u64 %l0, [p0]; ld.global.v4.u32 {_, %r1, _, %r2}, [%l0]; st.global.v2.u32 [%l0+16], {%r2, %r1};",
        ["p0"],
    )
    code, (result,) = device.run(text, [x], 1, 1)
    assert (code, result.tolist()) == (0, [0, 1, 2, 3, 3, 1, 6, 7])


def test_threads_with_more_registers_than_memory_are_an_error(device):
    text = kernel(".reg .b64 %q<200000>; bar.sync 0;", ["p0"])
    code, _, stderr = device.run_in_child(text, [np.zeros(4, np.uint32)], block=1024)
    assert (code, "more memory" in stderr) == (OUT_OF_RESOURCES, True)


def test_recursion_with_large_frames_is_an_error(device):
    """256 calls of half a megabyte per thread exceed the memory, as on a card."""
    head = ".func again()\n{ .local .b8 much[400000]; call.uni again, (); ret; }\n"
    code, _, stderr = device.run_in_child(
        kernel("call.uni again, ();", ["p0"], head=head), [np.zeros(4, np.uint32)], block=256
    )
    assert (code, "more memory" in stderr) == (OUT_OF_RESOURCES, True)


def test_a_refused_module_leaks_no_memory(device):
    import ctypes

    def free():
        value, total = ctypes.c_size_t(), ctypes.c_size_t()
        device.cuda.cuMemGetInfo_v2(ctypes.byref(value), ctypes.byref(total))
        return value.value

    free_before = free()
    assert device.load(HEAD + ".global .b8 much[100000000];\n.global .u64 x = nowhere;\n")[0] == NO_BINARY
    assert free() == free_before


def test_copies_and_fills_stay_within_allocations(device):
    import ctypes

    address, host = device.allocate(4096), (ctypes.c_uint8 * 8192)()
    size, cuda = ctypes.c_size_t, device.cuda
    assert cuda.cuMemcpyHtoD_v2(address, host, size(4096)) == 0
    assert cuda.cuMemcpyHtoD_v2(address, host, size(4097)) == INVALID_VALUE
    assert cuda.cuMemcpyDtoH_v2(host, ctypes.c_uint64(address.value + 4095), size(2)) == INVALID_VALUE
    assert cuda.cuMemcpyDtoD_v2(address, ctypes.c_uint64(64), size(1)) == INVALID_VALUE
    assert cuda.cuMemcpy(address, ctypes.c_uint64(ctypes.addressof(host)), size(8192)) == INVALID_VALUE
    assert cuda.cuMemsetD8_v2(address, 1, size(4097)) == INVALID_VALUE
    assert cuda.cuMemsetD32_v2(address, 1, size(1 << 62)) == INVALID_VALUE
    assert cuda.cudaMemcpy(address, host, size(4097), 1) == INVALID_VALUE
    assert cuda.cudaMemset(address, 0, size(4097)) == INVALID_VALUE
    assert cuda.cuMemHostAlloc(ctypes.byref(ctypes.c_void_p()), size(2**64 - 1), 0) != 0
    cuda.cuMemFree_v2(address)
