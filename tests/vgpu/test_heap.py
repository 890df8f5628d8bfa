"""Memory that kernels take themselves: malloc and free."""

import ctypes

import numpy as np
import pytest
from virtual_device import kernel

DECLARED = """
.extern .func (.param .b64 result) malloc(.param .b64 bytes);
.extern .func free(.param .b64 at);"""
TAKE = """{ .param .b64 a; .param .b64 r; st.param.b64 [a], %l2; call.uni (r), malloc, (a); ld.param.b64 %l3, [r]; }"""
GIVE = """{ .param .b64 a; st.param.b64 [a], %l3; call.uni free, (a); }"""
OWN = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 8; add.u64 %l0, %l0, %l1;"  # the thread's place in p0
TAKE_ALL = f"{OWN} ld.global.u64 %l2, [%l0]; {TAKE} st.global.u64 [%l0], %l3;"
USE = "setp.eq.u64 %p0, %l3, 0; @!%p0 st.u32 [%l3], %i; bar.sync 0; @!%p0 ld.u32 %r1, [%l3];"
GIVE_ALL = f"{OWN} ld.global.u64 %l3, [%l0]; {GIVE}"
HEAP = 8 << 20


def taken(device, sizes, **how):
    code, (at,) = device.run(kernel(TAKE_ALL, ["p0"], head=DECLARED), [sizes], block=len(sizes), **how)
    assert code == 0
    return at


def give(device, at):
    code, _ = device.run(kernel(GIVE_ALL, ["p0"], head=DECLARED), [at], block=len(at))
    assert code == 0


def test_no_two_pieces_overlap_and_each_is_aligned(device):
    sizes = np.arange(1, 65, dtype=np.uint64) * 7
    at = taken(device, sizes)
    assert (at != 0).all() and (at % 16 == 0).all()
    order = np.argsort(at)
    assert (at[order][:-1] + sizes[order][:-1] <= at[order][1:]).all()
    give(device, at)
    again = taken(device, sizes)
    assert not set(again) & set(at), "what was given back is not there again at once"
    give(device, again)
    for _ in range(20):  # but it is at last: more than there is, all together
        half = taken(device, np.full(1, HEAP - 1024, np.uint64))
        assert half[0] != 0
        give(device, half)


def test_what_does_not_fit_is_no_address(device):
    half = np.full(4, HEAP // 2, np.uint64)
    at = taken(device, half)
    assert np.count_nonzero(at) == 2
    assert taken(device, np.array([1], np.uint64))[0] == 0
    give(device, at)  # of no address, nothing
    whole = taken(device, np.array([HEAP], np.uint64))
    assert whole[0] != 0, "neighbours that were given back are one piece"
    give(device, whole)
    assert not taken(device, np.array([0, HEAP + 1, 1 << 63], np.uint64)).any()


@pytest.mark.parametrize("schedule", ["serial", "reverse", "random:3", "adversary:1"])
def test_each_thread_reads_what_it_wrote(device, schedule):
    place = "ld.param.u64 %l4, [p1]; mul.wide.u32 %l5, %i, 4; add.u64 %l4, %l4, %l5;"
    body = f"{TAKE_ALL} {USE} {place} st.global.u32 [%l4], %r1;"
    sizes, read = np.full(256, 40, np.uint64), np.zeros(256, np.uint32)
    code, (_, read), _ = device.run_in_child(
        kernel(body, ["p0", "p1"], head=DECLARED), [sizes, read], schedule=schedule, grid=2, block=128
    )
    assert code == 0 and read.tolist() == list(range(256))


def test_what_nobody_took_is_not_given_back(device):
    code, _, said = device.run_in_child(kernel(GIVE_ALL, ["p0"], head=DECLARED), [np.array([4096], np.uint64)], block=1)
    assert code == 700 and "0x1000" in said


def test_the_heap_is_as_large_as_was_asked_for_until_it_is_used(device):
    size = ctypes.c_size_t()
    give(device, taken(device, np.array([64], np.uint64)))
    assert device.cuda.cuCtxGetLimit(ctypes.byref(size), 2) == 0 and size.value == HEAP
    assert device.cuda.cuCtxSetLimit(2, ctypes.c_size_t(2 * HEAP)) == 1, "it is in use"
    assert device.cuda.cuCtxSetLimit(0, ctypes.c_size_t(4096)) == 0, "stacks grow by themselves"
