"""Handles that are none, or no more, and null pointers: CUDA's errors, and never the end of the process."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from virtual_device import kernel

INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT, INVALID_HANDLE = 1, 101, 201, 400
ADD = kernel("ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1;", ["p0"])
SEED = 20


def test_no_entry_point_ends_the_process(device):
    rounds = os.environ.get("VGPU_FUZZ_ROUNDS", "4")
    script = Path(__file__).with_name("entry_point_fuzz.py")
    command = [sys.executable, str(script), device.library, str(SEED), rounds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


def a_module(device):
    return device.load(ADD)[1]


def a_function(device):
    return device.function(a_module(device))[1]


def made(device, call, *arguments):
    handle = ctypes.c_void_p()
    assert getattr(device.cuda, call)(ctypes.byref(handle), *arguments) == 0
    return handle


def a_graph(device):
    return made(device, "cuGraphCreate", 0)


def an_executable(device):
    return made(device, "cuGraphInstantiateWithFlags", a_graph(device), ctypes.c_uint64(0))


# How a handle is made and destroyed, a call that wants one (None: there), and what it says of one that is none.
out = ctypes.create_string_buffer(4096)
HANDLES = {
    "context": (
        lambda d: made(d, "cuCtxCreate_v2", 0, 0), "cuCtxDestroy_v2", [("cuCtxSetCurrent", None)], INVALID_CONTEXT,
    ),
    "module": (
        a_module, "cuModuleUnload",
        [("cuModuleGetFunction", out, None, b"k"), ("cuModuleGetFunctionCount", out, None),
         ("cuModuleEnumerateFunctions", out, 4, None), ("cuModuleGetGlobal_v2", out, out, None, b"x"),
         ("cuLibraryGetModule", out, None), ("cuLibraryGetKernel", out, None, b"k"), ("cuLibraryUnload", None)],
        INVALID_HANDLE,
    ),
    "function": (
        a_function, None,
        [("cuFuncGetAttribute", out, 0, None), ("cuFuncSetAttribute", None, 8, 0), ("cuFuncGetName", out, None),
         ("cuFuncGetModule", out, None), ("cuKernelGetFunction", out, None), ("cuFuncSetCacheConfig", None, 0),
         ("cuFuncGetParamInfo", None, 0, out, out), ("cuFuncIsLoaded", out, None),
         ("cuLaunchKernel", None, 1, 1, 1, 1, 1, 1, 0, 0, out, 0),
         ("cuLaunchCooperativeKernel", None, 1, 1, 1, 1, 1, 1, 0, 0, out),
         ("cuOccupancyMaxActiveBlocksPerMultiprocessor", out, None, 32, 0)],
        INVALID_HANDLE,
    ),
    "stream": (
        lambda d: made(d, "cuStreamCreate", 0), "cuStreamDestroy_v2",
        [("cuStreamSynchronize", None), ("cuStreamQuery", None), ("cuStreamGetFlags", None, out),
         ("cuStreamGetPriority", None, out), ("cuStreamGetCtx", None, out), ("cuStreamIsCapturing", None, out),
         ("cuStreamGetId", None, out), ("cudaStreamSynchronize", None), ("cudaStreamDestroy", None)],
        INVALID_HANDLE,
    ),
    "event": (
        lambda d: made(d, "cuEventCreate", 0), "cuEventDestroy_v2",
        [("cuEventRecord", None, 0), ("cuEventQuery", None), ("cuEventSynchronize", None),
         ("cuEventElapsedTime", out, None, None), ("cuStreamWaitEvent", 0, None, 0), ("cudaEventDestroy", None)],
        INVALID_HANDLE,
    ),
    "graph": (
        a_graph, "cuGraphDestroy",
        [("cuGraphAddEmptyNode", out, None, 0, 0), ("cuGraphGetNodes", None, 0, out),
         ("cuGraphInstantiateWithFlags", out, None, 0)],
        INVALID_VALUE,
    ),
    "executable graph": (
        an_executable, "cuGraphExecDestroy",
        [("cuGraphLaunch", None, 0), ("cuGraphUpload", None, 0), ("cuGraphNodeSetEnabled", None, 0, 1)], INVALID_VALUE,
    ),
    "pool": (
        lambda d: made(d, "cuMemPoolCreate", ctypes.create_string_buffer(128)), "cuMemPoolDestroy",
        [("cuMemPoolTrimTo", None, 0), ("cuMemPoolGetAttribute", None, 4, out), ("cuDeviceSetMemPool", 0, None),
         ("cuMemAllocFromPoolAsync", out, 16, None, 0)],
        INVALID_VALUE,
    ),
    "linker": (
        lambda d: made_link(d), "cuLinkDestroy",
        [("cuLinkAddData_v2", None, 1, out, 16, b"", 0, 0, 0), ("cuLinkComplete", None, out, out)], INVALID_HANDLE,
    ),
}  # fmt: skip


def made_link(device):
    handle = ctypes.c_void_p()
    assert device.cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(handle)) == 0
    return handle


def results(device, name, handle):
    def ready(one):
        if one is None:
            return handle
        return ctypes.c_size_t(one) if isinstance(one, int) else one

    return {call: getattr(device.cuda, call)(*map(ready, given)) for call, *given in HANDLES[name][2]}


WILD = [0xDEAD0000, 0x123456789ABC, ctypes.addressof(out), 0xFFFFFFFFFFFFFFF8]


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_that_is_none(device, name):
    _, destroy, calls, wanted = HANDLES[name]
    for wild in WILD:
        handle = ctypes.c_void_p(wild)
        assert results(device, name, handle) == {call: wanted for call, *_ in calls}, hex(wild)
        assert not destroy or getattr(device.cuda, destroy)(handle) == wanted


@pytest.mark.parametrize("name", [name for name in HANDLES if HANDLES[name][1]])
def test_a_handle_is_destroyed_once(device, name):
    make, destroy, calls, wanted = HANDLES[name]
    handle = make(device)
    assert [getattr(device.cuda, destroy)(handle) for _ in range(3)] == [0, wanted, wanted]
    assert results(device, name, handle) == {call: wanted for call, *_ in calls}


def test_a_function_goes_with_its_module(device):
    module = a_module(device)
    functions = [device.function(module)[1].value for _ in range(2)]
    assert functions[0] == functions[1], "the same each time"
    assert device.cuda.cuModuleUnload(module) == 0
    handle = ctypes.c_void_p(functions[0])
    assert set(results(device, "function", handle).values()) == {INVALID_HANDLE}


def test_a_context_that_is_gone_is_nobodys(device):
    own, current, before = ctypes.c_void_p(), ctypes.c_void_p(7), made(device, "cuCtxCreate_v2", 0, 0)
    context = made(device, "cuCtxCreate_v2", 0, 0)
    device.cuda.cuCtxGetCurrent(ctypes.byref(own))
    assert own.value == context.value
    assert device.cuda.cuCtxDestroy_v2(context) == 0
    assert device.cuda.cuCtxSetCurrent(context) == device.cuda.cuCtxPushCurrent_v2(context) == INVALID_CONTEXT
    device.cuda.cuCtxGetCurrent(ctypes.byref(current))
    assert current.value == before.value, "the one below is current again"
    assert device.cuda.cuCtxDestroy_v2(before) == 0
    for call in ("cuDeviceGetName", "cuDeviceGetAttribute"):
        assert getattr(device.cuda, call)(out, 1, 5) == INVALID_DEVICE


def test_copies_and_fills_have_both_ends(device):
    cuda, at, host, n = device.cuda, device.allocate(64), np.zeros(64, np.uint8), ctypes.c_size_t
    there = ctypes.c_void_p(host.ctypes.data)
    for bad in (0, at.value + 1, at.value + 64, at.value - 1, host.ctypes.data):
        bad = ctypes.c_uint64(bad)
        assert cuda.cuMemcpyHtoD_v2(bad, there, n(64)) == INVALID_VALUE
        assert cuda.cuMemcpyDtoH_v2(there, bad, n(64)) == INVALID_VALUE
        assert cuda.cuMemcpyDtoD_v2(bad, at, n(64)) == cuda.cuMemcpyDtoD_v2(at, bad, n(64)) == INVALID_VALUE
        assert cuda.cuMemcpyHtoDAsync_v2(bad, there, n(64), None) == INVALID_VALUE
        assert cuda.cuMemsetD8_v2(bad, 1, n(64)) == cuda.cuMemsetD8Async(bad, 1, n(64), None) == INVALID_VALUE
    for copy in (cuda.cuMemcpyHtoD_v2, cuda.cuMemcpy, cuda.cudaMemcpy):
        assert copy(at, None, n(64), 1) == INVALID_VALUE
    assert cuda.cuMemcpyDtoH_v2(None, at, n(64)) == INVALID_VALUE
    assert cuda.cuMemcpyHtoD_v2(None, None, n(0)) == 0
    assert cuda.cuMemsetD32_v2(ctypes.c_uint64(at.value + 2), 1, n(1)) == INVALID_VALUE, "not aligned"
    assert cuda.cuMemsetD2D8_v2(at, n(8), 1, n(9), n(2)) == INVALID_VALUE, "rows that overlap"
    assert cuda.cuMemsetD2D8_v2(at, n(32), 1, n(16), n(3)) == INVALID_VALUE
    assert cuda.cuMemsetD2D8_v2(at, n(32), 1, n(32), n(2)) == 0
    assert cuda.cudaMemcpy(at, there, n(64), 9) == 21, "no such direction"
    assert cuda.cudaMemcpy2D(at, n(8), there, n(8), n(9), n(2), 1) == 12, "a pitch that is too small"
    assert not host.any()


def test_pinned_memory_is_freed_and_registered_once(device):
    cuda, at, size = device.cuda, ctypes.c_void_p(), ctypes.c_size_t(64)
    assert cuda.cuMemHostAlloc(ctypes.byref(at), size, 0) == 0
    assert [cuda.cuMemFreeHost(at), cuda.cuMemFreeHost(at), cuda.cuMemFreeHost(None)] == [
        0,
        INVALID_VALUE,
        INVALID_VALUE,
    ]
    assert [cuda.cuMemHostRegister_v2(out, size, 0) for _ in range(2)] == [0, 712]
    assert cuda.cuMemFreeHost(out) == INVALID_VALUE
    assert [cuda.cuMemHostUnregister(out) for _ in range(2)] == [0, 713]


def test_memory_is_freed_by_the_call_of_its_kind(device):
    """The device's is not freed as the host's, nor the other way; what was refused is still there."""
    cuda, host = device.cuda, ctypes.c_void_p()
    at = device.allocate(64)
    assert cuda.cuMemAllocHost_v2(ctypes.byref(host), ctypes.c_size_t(64)) == 0
    assert (cuda.cuMemFreeHost(ctypes.c_void_p(at.value)), cuda.cuMemFree_v2(host)) == (INVALID_VALUE, INVALID_VALUE)
    assert (cuda.cuMemFree_v2(at), cuda.cuMemFreeHost(host)) == (0, 0)


def test_memory_is_freed_by_its_beginning_and_once(device):
    at = device.allocate(64)
    assert device.cuda.cuMemFree_v2(ctypes.c_uint64(at.value + 16)) == INVALID_VALUE
    assert [device.cuda.cuMemFree_v2(at) for _ in range(2)] == [0, INVALID_VALUE]
    assert device.cuda.cuMemFree_v2(ctypes.c_uint64(0)) == 0
