"""The device's heap: malloc and free in kernels."""

import ctypes

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

DECLARED = """
.extern .func (.param .b64 result) malloc(.param .b64 bytes);
.extern .func free(.param .b64 at);"""
ALLOCATE = (
    """{ .param .b64 a; .param .b64 r; st.param.b64 [a], %l2; call.uni (r), malloc, (a); ld.param.b64 %l3, [r]; }"""
)
FREE = """{ .param .b64 a; st.param.b64 [a], %l3; call.uni free, (a); }"""
OWN = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1;"  # the thread's element of p0
ALLOCATE_ALL = f"{OWN} ld.global.u64 %l2, [%l0]; {ALLOCATE} st.global.u64 [%l0], %l3;"
USE = "setp.eq.u64 %p0, %l3, 0; @!%p0 st.u32 [%l3], %i; bar.sync 0; @!%p0 ld.u32 %r1, [%l3];"
FREE_ALL = f"{OWN} ld.global.u64 %l3, [%l0]; {FREE}"
HEAP = 8 << 20  # bytes: the default of cudaLimitMallocHeapSize


def allocate(device, sizes, **options):
    """Allocate a block of each size in a thread of its own; return the addresses."""
    code, (addresses,) = device.run(kernel(ALLOCATE_ALL, ["p0"], head=DECLARED), [sizes], block=len(sizes), **options)
    assert code == 0
    return addresses


def free(device, addresses):
    """Free the blocks."""
    code, _ = device.run(kernel(FREE_ALL, ["p0"], head=DECLARED), [addresses], block=len(addresses))
    assert code == 0


def test_allocations_are_aligned_and_do_not_overlap(device):
    sizes = np.arange(1, 65, dtype=np.uint64) * 7
    addresses = allocate(device, sizes)
    assert (addresses != 0).all() and (addresses % 16 == 0).all()
    order = np.argsort(addresses)
    assert (addresses[order][:-1] + sizes[order][:-1] <= addresses[order][1:]).all()
    free(device, addresses)
    second_addresses = allocate(device, sizes)
    assert not set(second_addresses) & set(addresses), "what was given back is not there again at once"
    free(device, second_addresses)
    for _ in range(20):  # freed memory is reused in the end: 20 times nearly the whole heap
        nearly_all = allocate(device, np.full(1, HEAP - 1024, np.uint64))
        assert nearly_all[0] != 0
        free(device, nearly_all)


def test_malloc_returns_null_if_the_heap_is_full(device):
    half = np.full(4, HEAP // 2, np.uint64)
    addresses = allocate(device, half)
    assert np.count_nonzero(addresses) == 2
    assert allocate(device, np.array([1], np.uint64))[0] == 0
    free(device, addresses)  # the null pointers among them have no effect
    full_block = allocate(device, np.array([HEAP], np.uint64))
    assert full_block[0] != 0, "neighbours that were given back are one piece"
    free(device, full_block)
    assert not allocate(device, np.array([0, HEAP + 1, 1 << 63], np.uint64)).any()


@pytest.mark.parametrize("schedule", ["serial", "reverse", "random:3", "adversary:1"])
def test_each_thread_reads_what_it_wrote(device, schedule):
    place = "ld.param.u64 %l4, [p1]; mul.wide.u32 %l5, %i, 4; add.u64 %l4, %l4, %l5;"
    body = f"{ALLOCATE_ALL} {USE} {place} st.global.u32 [%l4], %r1;"
    sizes, values = np.full(256, 40, np.uint64), np.zeros(256, np.uint32)
    code, (_, values), _ = device.run_in_child(
        kernel(body, ["p0", "p1"], head=DECLARED), [sizes, values], schedule=schedule, grid=2, block=128
    )
    assert code == 0 and values.tolist() == list(range(256))


def test_freeing_an_invalid_address_is_a_fault(device):
    code, _, stderr = device.run_in_child(
        kernel(FREE_ALL, ["p0"], head=DECLARED), [np.array([4096], np.uint64)], block=1
    )
    assert code == 700 and "0x1000" in stderr


def test_the_heap_size_can_be_set_before_its_use(device):
    size = ctypes.c_size_t()
    free(device, allocate(device, np.array([64], np.uint64)))
    assert device.cuda.cuCtxGetLimit(ctypes.byref(size), 2) == 0 and size.value == HEAP
    assert device.cuda.cuCtxSetLimit(2, ctypes.c_size_t(2 * HEAP)) == 1, "it is in use"
    assert device.cuda.cuCtxSetLimit(0, ctypes.c_size_t(4096)) == 0, "stacks grow by themselves"
