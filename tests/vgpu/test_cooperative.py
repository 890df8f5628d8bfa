"""Cooperative launches: grid.sync() as compiled by nvcc 12 and 13, with %envreg1 and %envreg2; CUDA 13's properties."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from bare_program import run_program  # code has cuda, text, load(), allocate(), free(), launch(), given(), words()
from virtual_device import HEAD

# Each thread writes its word; behind a grid barrier, it reads the word of the thread opposite to it.
GRID_SYNC = (
    HEAD
    + """
.visible .entry k(.param .b64 p0) {
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %l<12>;
mov.u32 %r0, %envreg2; mov.u32 %r1, %envreg1; cvt.u64.u32 %l0, %r0; cvt.u64.u32 %l1, %r1;
bfi.b64 %l0, %l1, %l0, 32, 32;
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
mov.u32 %r10, %nctaid.x;
ld.param.u64 %l2, [p0]; mul.wide.u32 %l3, %r3, 4; add.u64 %l3, %l2, %l3;
add.u32 %r4, %r3, 1000; st.global.u32 [%l3], %r4;
setp.ne.s64 %p1, %l0, 0; @%p1 bra there; trap;
there: barrier.sync 0; setp.ne.u32 %p2, %r2, 0; @%p2 bra together;
setp.eq.u32 %p3, %r0, 0; mov.u32 %r5, -2147483647; sub.s32 %r5, %r5, %r10; selp.b32 %r5, %r5, 1, %p3;
atom.add.release.gpu.u32 %r6, [%l0+4], %r5;
wait: ld.acquire.gpu.u32 %r7, [%l0+4]; xor.b32 %r11, %r7, %r6; setp.gt.s32 %p3, %r11, -1; @%p3 bra wait;
together: barrier.sync 0;
mul.lo.u32 %r8, %r10, %r1; sub.u32 %r8, %r8, 1; sub.u32 %r8, %r8, %r3; mul.wide.u32 %l4, %r8, 4; add.u64 %l4, %l2, %l4;
ld.global.u32 %r9, [%l4]; mul.wide.u32 %l5, %r10, 256; add.u64 %l5, %l3, %l5; st.global.u32 [%l5], %r9;
}"""
)
PROGRAM = """
function, at = load(text), allocate(2 * 5 * 64 * 4)
for _ in range(2):
    if {how!r} == "cooperative":
        print(cuda.cuLaunchCooperativeKernel(function, 5, 1, 1, 64, 1, 1, 0, None, given(at)))
    elif {how!r} == "attribute":
        attribute, parameters = (ctypes.c_uint * 18)(2, 0, 1), given(at)
        config = (ctypes.c_uint64 * 7)(5 | 1 << 32, 1 | 64 << 32, 1 | 1 << 32, 0, 0, ctypes.addressof(attribute), 1)
        print(cuda.cuLaunchKernelEx(config, function, parameters, None))
    else:
        print(launch(function, at, grid=5, block=64))
made = (ctypes.c_uint32 * 640)()
cuda.cuMemcpyDtoH_v2(made, ctypes.c_uint64(at), ctypes.c_size_t(2560))
print(*made)
"""


@pytest.fixture
def run_grid_sync(device):
    """Return a function that launches GRID_SYNC twice; it returns both results, the words written and read, stderr."""

    def launches(how, **environment):
        (first, second, *words), stderr = run_program(device, PROGRAM.format(how=how), GRID_SYNC, **environment)
        return first, second, words[:320], words[320:], stderr

    return launches


@pytest.mark.parametrize("how", ["cooperative", "attribute"])
@pytest.mark.parametrize(
    "schedule", ["serial", "reverse", "random:1", "adversary:2", "atomics:3", "exchange", "pct:3,3"]
)
def test_grid_sync_waits_for_all_blocks(run_grid_sync, how, schedule):
    words = [1000 + k for k in range(320)]
    assert run_grid_sync(how, VGPU_SCHEDULE=schedule)[:4] == (0, 0, words, words[::-1])


def test_grid_sync_in_an_ordinary_launch_fails(run_grid_sync):
    assert run_grid_sync("plain")[:2] == (719, 719), "as the kernel itself says by a trap"


def test_grid_sync_orders_memory_accesses(run_grid_sync):
    first, _, _, _, stderr = run_grid_sync("cooperative", VGPU_CHECK="racecheck,initcheck")
    assert (first, stderr) == (0, "")


def test_the_driver_version_is_that_of_cuda_13(device):
    version = ctypes.c_int()
    for get_version in (device.cuda.cuDriverGetVersion, device.cuda.cudaDriverGetVersion):
        assert get_version(ctypes.byref(version)) == 0 and version.value >= 13000


def test_cudaDeviceProp_has_the_layout_of_cuda_13(device):
    """The offsets are those of driver_types.h of CUDA 13."""
    runtime = ctypes.CDLL(str(Path(device.library).parent / "libcudart.so.13"))
    properties, version, value = np.full(1100, 0xAA, np.uint8), ctypes.c_int(), ctypes.c_int()
    assert runtime.cudaRuntimeGetVersion(ctypes.byref(version)) == 0 and version.value == 13000
    assert runtime.cudaGetDeviceProperties(ctypes.c_void_p(properties.ctypes.data), 0) == 0
    assert (properties[1008:] == 0xAA).all()
    words = properties[:1008].view(np.int32)
    for offset, attribute in {360: 75, 364: 76, 384: 16, 588: 41, 604: 39, 624: 81, 668: 95, 672: 97, 320: 1}.items():
        # Asked of the runtime: modules of other tests may have raised the capability of the driver's own instance.
        assert runtime.cudaDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
        assert words[offset // 4] == value.value, offset
