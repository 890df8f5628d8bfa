"""Special registers on a thread's position and its device, as mov and cvt may read them."""

import ctypes

import numpy as np
import pytest
from virtual_device import kernel

# Registers of kernel(): %r b32, %l b64, %h b16, %p predicates. %pm3_64 is a performance counter.
COMPONENTS = {"x": 0, "y": 1, "z": 2, "r": 0, "g": 1, "b": 2}
ALWAYS = {
    **{f"%{name}.{fourth}": 0 for name in ("tid", "ntid", "ctaid", "nctaid", "cluster_nctaid") for fourth in "wa"},
    **{f"%pm{k}": 0 for k in range(8)},
    "%cluster_ctaid.y": 0,
    "%cluster_nctaid.z": 1,
    "%cluster_ctarank": 0,
    "%cluster_nctarank": 1,
}


def read(device, body, count):
    """Return the words %d0, %d1, ... of thread (2, 1, 0) in block (1, 2, 0), of 3 x 3 blocks of 4 x 2 threads."""
    declaration = f".reg .b32 %d<{count}>;\n"
    stores = "".join(f"st.global.u32 [%l0+{4 * k}], %d{k};" for k in range(count))
    exit_others = """mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y;
    setp.ne.u32 %p0, %r1, 2; setp.ne.or.u32 %p0, %r2, 1, %p0; setp.ne.or.u32 %p0, %r3, 1, %p0;
    setp.ne.or.u32 %p0, %r4, 2, %p0; @%p0 exit;"""
    text = kernel(f"{declaration}{exit_others}{body} ld.param.u64 %l0, [p0];{stores}", ["p0"])
    result, module = device.load(text)
    assert result == 0
    result, function = device.function(module)
    assert result == 0, body
    address = device.allocate(4 * count)
    words = np.zeros(count, np.uint32)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    assert device.cuda.cuLaunchKernel(function, 3, 3, 1, 4, 2, 1, 0, None, pointers, None) == 0
    assert (
        device.cuda.cuMemcpyDtoH_v2(words.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(words.nbytes)) == 0
    )
    device.cuda.cuMemFree_v2(address), device.cuda.cuModuleUnload(module)
    return words.tolist()


def test_components_of_vector_registers(device):
    expected = {"tid": (2, 1, 0), "ntid": (4, 2, 1), "ctaid": (1, 2, 0), "nctaid": (3, 3, 1), "clusterid": (1, 2, 0)}
    names = [(name, letter) for name in expected for letter in COMPONENTS]
    body = "".join(f"mov.u32 %d{k}, %{name}.{letter};" for k, (name, letter) in enumerate(names))
    assert read(device, body, len(names)) == [expected[name][COMPONENTS[letter]] for name, letter in names]


def test_constant_registers(device):
    body = "".join(f"mov.u32 %d{k}, 77; mov.u32 %d{k}, {name};" for k, name in enumerate(ALWAYS))
    assert read(device, body, len(ALWAYS)) == list(ALWAYS.values())


def test_whole_vectors(device):
    body = "mov.v4.u32 {%d0, %d1, _, %d3}, %ctaid; mov.v2.u32 {%d4, %d5}, {%tid.x, 9}; mov.u32 %d2, 5;"
    assert read(device, body, 6) == [1, 2, 5, 0, 2, 9]


def test_overlapping_vectors_are_exchanged(device):
    body = "mov.u32 %d0, 1; mov.u32 %d1, 2; mov.v2.b32 {%d0, %d1}, {%d1, %d0};"
    body += "mov.v4.b32 {%d2, %d3, %d4, %d5}, {%d0, %d0, %d1, 8}; mov.v2.u32 {%d6, %d7}, 3; mov.v2.b32 {%d8, %d9}, %d5;"
    assert read(device, body, 10) == [2, 1, 2, 2, 1, 8, 3, 3, 8, 8]


def test_registers_of_other_widths(device):
    body = """mov.u16 %h0, %tid.x; cvt.u32.u16 %d0, %h0; mov.u64 %l1, %pm3_64; cvt.u32.u64 %d1, %l1;
    mov.u64 %l1, %gridid;
    cvt.u32.u64 %d2, %l1; cvt.u64.u32 %l1, %ctaid.y; cvt.u32.u64 %d3, %l1; mov.pred %p1, !%is_explicit_cluster;
    selp.u32 %d4, 1, 0, %p1;"""
    assert read(device, body, 5) == [2, 0, 0, 2, 1]


@pytest.mark.parametrize(
    "body",
    [
        "mov.u64 %l0, %tid.x;",
        "mov.u64 %l0, %laneid;",
        "mov.u16 %h0, %laneid;",
        "mov.u32 %r0, %pm8;",
        "mov.u32 %r0, %pm0_64;",
        "mov.u32 %r0, %tid;",
        "mov.f32 %r0, %tid.x;",
        "mov.v2.u32 {%r0, %r1}, %tid;",
        "mov.v4.f32 {%r0, %r1, %r2, %r3}, %tid;",
        "mov.v4.b64 {%l0, %l1, %l2, %l3}, {%l0, %l1, %l2, %l3};",
        "mov.v2.b32 {%r0, %r1}, {%r0, %r1, %r2};",
        "add.u32 %r0, %tid.w, 1;",
        "mov.u32 %tid.w, %r0;",
    ],
)
def test_reads_that_ptxas_refuses_are_refused(device, body):
    device.assert_refused(kernel(body, ["p0"]))
