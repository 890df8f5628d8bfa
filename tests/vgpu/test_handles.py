"""Invalid and destroyed handles, and null pointers: calls return CUDA's errors, and never end the process."""

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
    process = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (process.returncode, process.stdout) == (0, ""), process.stderr[-2000:]


def create_module(device):
    return device.load(ADD)[1]


def create_function(device):
    return device.function(create_module(device))[1]


def create_handle(device, call, *arguments):
    """Create a handle by a call."""
    handle = ctypes.c_void_p()
    assert getattr(device.cuda, call)(ctypes.byref(handle), *arguments) == 0
    return handle


def create_graph(device):
    return create_handle(device, "cuGraphCreate", 0)


def create_executable(device):
    return create_handle(device, "cuGraphInstantiateWithFlags", create_graph(device), ctypes.c_uint64(0))


# kind: how to create and destroy it, calls that take it in place of None, their error for an invalid handle
out = ctypes.create_string_buffer(4096)
HANDLES = {
    "context": (
        lambda d: create_handle(d, "cuCtxCreate_v2", 0, 0), "cuCtxDestroy_v2", [("cuCtxSetCurrent", None)],
        INVALID_CONTEXT,
    ),
    "module": (
        create_module, "cuModuleUnload",
        [("cuModuleGetFunction", out, None, b"k"), ("cuModuleGetFunctionCount", out, None),
         ("cuModuleEnumerateFunctions", out, 4, None), ("cuModuleGetGlobal_v2", out, out, None, b"x"),
         ("cuLibraryGetModule", out, None), ("cuLibraryGetKernel", out, None, b"k"), ("cuLibraryUnload", None)],
        INVALID_HANDLE,
    ),
    "function": (
        create_function, None,
        [("cuFuncGetAttribute", out, 0, None), ("cuFuncSetAttribute", None, 8, 0), ("cuFuncGetName", out, None),
         ("cuFuncGetModule", out, None), ("cuKernelGetFunction", out, None), ("cuFuncSetCacheConfig", None, 0),
         ("cuFuncGetParamInfo", None, 0, out, out), ("cuFuncIsLoaded", out, None),
         ("cuLaunchKernel", None, 1, 1, 1, 1, 1, 1, 0, 0, out, 0),
         ("cuLaunchCooperativeKernel", None, 1, 1, 1, 1, 1, 1, 0, 0, out),
         ("cuOccupancyMaxActiveBlocksPerMultiprocessor", out, None, 32, 0)],
        INVALID_HANDLE,
    ),
    "stream": (
        lambda d: create_handle(d, "cuStreamCreate", 0), "cuStreamDestroy_v2",
        [("cuStreamSynchronize", None), ("cuStreamQuery", None), ("cuStreamGetFlags", None, out),
         ("cuStreamGetPriority", None, out), ("cuStreamGetCtx", None, out), ("cuStreamIsCapturing", None, out),
         ("cuStreamGetId", None, out), ("cudaStreamSynchronize", None), ("cudaStreamDestroy", None)],
        INVALID_HANDLE,
    ),
    "event": (
        lambda d: create_handle(d, "cuEventCreate", 0), "cuEventDestroy_v2",
        [("cuEventRecord", None, 0), ("cuEventQuery", None), ("cuEventSynchronize", None),
         ("cuEventElapsedTime", out, None, None), ("cuStreamWaitEvent", 0, None, 0), ("cudaEventDestroy", None)],
        INVALID_HANDLE,
    ),
    "graph": (
        create_graph, "cuGraphDestroy",
        [("cuGraphAddEmptyNode", out, None, 0, 0), ("cuGraphGetNodes", None, 0, out),
         ("cuGraphInstantiateWithFlags", out, None, 0)],
        INVALID_VALUE,
    ),
    "executable graph": (
        create_executable, "cuGraphExecDestroy",
        [("cuGraphLaunch", None, 0), ("cuGraphUpload", None, 0), ("cuGraphNodeSetEnabled", None, 0, 1)], INVALID_VALUE,
    ),
    "pool": (
        lambda d: create_handle(d, "cuMemPoolCreate", ctypes.create_string_buffer(128)), "cuMemPoolDestroy",
        [("cuMemPoolTrimTo", None, 0), ("cuMemPoolGetAttribute", None, 4, out), ("cuDeviceSetMemPool", 0, None),
         ("cuMemAllocFromPoolAsync", out, 16, None, 0)],
        INVALID_VALUE,
    ),
    "linker": (
        lambda d: create_linker(d), "cuLinkDestroy",
        [("cuLinkAddData_v2", None, 1, out, 16, b"", 0, 0, 0), ("cuLinkComplete", None, out, out)], INVALID_HANDLE,
    ),
}  # fmt: skip


def create_linker(device):
    handle = ctypes.c_void_p()
    assert device.cuda.cuLinkCreate_v2(0, None, None, ctypes.byref(handle)) == 0
    return handle


def call_results(device, name, handle):
    """Return the status of each call of the table for this handle."""

    def to_argument(value):
        if value is None:
            return handle
        return ctypes.c_size_t(value) if isinstance(value, int) else value

    return {call: getattr(device.cuda, call)(*map(to_argument, arguments)) for call, *arguments in HANDLES[name][2]}


INVALID_HANDLES = [0xDEAD0000, 0x123456789ABC, ctypes.addressof(out), 0xFFFFFFFFFFFFFFF8]


@pytest.mark.parametrize("name", HANDLES)
def test_invalid_handles_return_errors(device, name):
    _, destroy, calls, error = HANDLES[name]
    for wild in INVALID_HANDLES:
        handle = ctypes.c_void_p(wild)
        assert call_results(device, name, handle) == {call: error for call, *_ in calls}, hex(wild)
        assert not destroy or getattr(device.cuda, destroy)(handle) == error


@pytest.mark.parametrize("name", [name for name in HANDLES if HANDLES[name][1]])
def test_destroying_a_handle_twice_is_an_error(device, name):
    create, destroy, calls, error = HANDLES[name]
    handle = create(device)
    assert [getattr(device.cuda, destroy)(handle) for _ in range(3)] == [0, error, error]
    assert call_results(device, name, handle) == {call: error for call, *_ in calls}


def test_a_function_is_invalid_after_its_module_is_unloaded(device):
    module = create_module(device)
    functions = [device.function(module)[1].value for _ in range(2)]
    assert functions[0] == functions[1], "the same each time"
    assert device.cuda.cuModuleUnload(module) == 0
    handle = ctypes.c_void_p(functions[0])
    assert set(call_results(device, "function", handle).values()) == {INVALID_HANDLE}


def test_a_destroyed_context_is_not_current(device):
    created, current, outer = ctypes.c_void_p(), ctypes.c_void_p(7), create_handle(device, "cuCtxCreate_v2", 0, 0)
    context = create_handle(device, "cuCtxCreate_v2", 0, 0)
    device.cuda.cuCtxGetCurrent(ctypes.byref(created))
    assert created.value == context.value
    assert device.cuda.cuCtxDestroy_v2(context) == 0
    assert device.cuda.cuCtxSetCurrent(context) == device.cuda.cuCtxPushCurrent_v2(context) == INVALID_CONTEXT
    device.cuda.cuCtxGetCurrent(ctypes.byref(current))
    assert current.value == outer.value, "the one below is current again"
    assert device.cuda.cuCtxDestroy_v2(outer) == 0
    for call in ("cuDeviceGetName", "cuDeviceGetAttribute"):
        assert getattr(device.cuda, call)(out, 1, 5) == INVALID_DEVICE


def test_copies_and_fills_check_both_pointers(device):
    cuda, address, host, n = device.cuda, device.allocate(64), np.zeros(64, np.uint8), ctypes.c_size_t
    host_pointer = ctypes.c_void_p(host.ctypes.data)
    for bad in (0, address.value + 1, address.value + 64, address.value - 1, host.ctypes.data):
        bad = ctypes.c_uint64(bad)
        assert cuda.cuMemcpyHtoD_v2(bad, host_pointer, n(64)) == INVALID_VALUE
        assert cuda.cuMemcpyDtoH_v2(host_pointer, bad, n(64)) == INVALID_VALUE
        assert cuda.cuMemcpyDtoD_v2(bad, address, n(64)) == cuda.cuMemcpyDtoD_v2(address, bad, n(64)) == INVALID_VALUE
        assert cuda.cuMemcpyHtoDAsync_v2(bad, host_pointer, n(64), None) == INVALID_VALUE
        assert cuda.cuMemsetD8_v2(bad, 1, n(64)) == cuda.cuMemsetD8Async(bad, 1, n(64), None) == INVALID_VALUE
    for copy in (cuda.cuMemcpyHtoD_v2, cuda.cuMemcpy, cuda.cudaMemcpy):
        assert copy(address, None, n(64), 1) == INVALID_VALUE
    assert cuda.cuMemcpyDtoH_v2(None, address, n(64)) == INVALID_VALUE
    assert cuda.cuMemcpyHtoD_v2(None, None, n(0)) == 0
    assert cuda.cuMemsetD32_v2(ctypes.c_uint64(address.value + 2), 1, n(1)) == INVALID_VALUE, "not aligned"
    assert cuda.cuMemsetD2D8_v2(address, n(8), 1, n(9), n(2)) == INVALID_VALUE, "rows that overlap"
    assert cuda.cuMemsetD2D8_v2(address, n(32), 1, n(16), n(3)) == INVALID_VALUE
    assert cuda.cuMemsetD2D8_v2(address, n(32), 1, n(32), n(2)) == 0
    assert cuda.cudaMemcpy(address, host_pointer, n(64), 9) == 21, "no such direction"
    assert cuda.cudaMemcpy2D(address, n(8), host_pointer, n(8), n(9), n(2), 1) == 12, "a pitch that is too small"
    assert not host.any()


def test_pinned_memory_is_freed_and_registered_only_once(device):
    cuda, address, size = device.cuda, ctypes.c_void_p(), ctypes.c_size_t(64)
    assert cuda.cuMemHostAlloc(ctypes.byref(address), size, 0) == 0
    assert [cuda.cuMemFreeHost(address), cuda.cuMemFreeHost(address), cuda.cuMemFreeHost(None)] == [
        0,
        INVALID_VALUE,
        INVALID_VALUE,
    ]
    assert [cuda.cuMemHostRegister_v2(out, size, 0) for _ in range(2)] == [0, 712]
    assert cuda.cuMemFreeHost(out) == INVALID_VALUE
    assert [cuda.cuMemHostUnregister(out) for _ in range(2)] == [0, 713]


def test_memory_must_be_freed_by_the_matching_call(device):
    """Device memory is not freed as host memory, nor host memory as device memory; a refused call changes nothing."""
    cuda, host = device.cuda, ctypes.c_void_p()
    address = device.allocate(64)
    assert cuda.cuMemAllocHost_v2(ctypes.byref(host), ctypes.c_size_t(64)) == 0
    assert (cuda.cuMemFreeHost(ctypes.c_void_p(address.value)), cuda.cuMemFree_v2(host)) == (
        INVALID_VALUE,
        INVALID_VALUE,
    )
    assert (cuda.cuMemFree_v2(address), cuda.cuMemFreeHost(host)) == (0, 0)


def test_memory_must_be_freed_by_its_first_address_and_once(device):
    address = device.allocate(64)
    assert device.cuda.cuMemFree_v2(ctypes.c_uint64(address.value + 16)) == INVALID_VALUE
    assert [device.cuda.cuMemFree_v2(address) for _ in range(2)] == [0, INVALID_VALUE]
    assert device.cuda.cuMemFree_v2(ctypes.c_uint64(0)) == 0
