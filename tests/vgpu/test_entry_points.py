"""Driver calls of programs for CUDA 11 to 13: entry points by version, libraries, structured launches, memory pools."""

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from virtual_device import build, kernel

ADD_ONE = kernel("ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1;", ["p0"])


def entry_point(device, name, version, flags=0):
    """Return the address of the entry point, and the status of the search."""
    pointer, status = ctypes.c_void_p(), ctypes.c_int(7)
    search = device.cuda.cuGetProcAddress_v2
    assert search(name.encode(), ctypes.byref(pointer), version, ctypes.c_uint64(flags), ctypes.byref(status)) == 0
    return pointer.value, status.value


def address(device, name):
    return ctypes.cast(getattr(device.cuda, name), ctypes.c_void_p).value


@pytest.mark.parametrize(
    ("name", "version", "form"),
    [
        ("cuInit", 2000, "cuInit"),
        ("cuMemAlloc", 3020, "cuMemAlloc_v2"),
        ("cuCtxCreate", 10020, "cuCtxCreate_v2"),
        ("cuCtxCreate", 12040, "cuCtxCreate_v3"),
        ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
        ("cuCtxSynchronize", 12090, "cuCtxSynchronize"),
        ("cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"),
        ("cuStreamGetCaptureInfo", 10010, "cuStreamGetCaptureInfo"),
        ("cuStreamGetCaptureInfo", 12000, "cuStreamGetCaptureInfo_v2"),
        ("cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"),
        ("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"),
        ("cuMemPrefetchAsync", 12010, "cuMemPrefetchAsync"),
        ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ],
)
def test_an_entry_point_is_that_of_the_requested_version(device, name, version, form):
    assert entry_point(device, name, version) == (address(device, form), 0)


def test_per_thread_default_stream_has_its_own_entry_points(device):
    assert entry_point(device, "cuLaunchKernel", 12000, flags=2)[0] == address(device, "cuLaunchKernel_ptsz")
    assert entry_point(device, "cuMemcpyHtoD", 12000, flags=2)[0] == address(device, "cuMemcpyHtoD_v2_ptds")
    assert entry_point(device, "cuMemAlloc", 12000, flags=2)[0] == address(device, "cuMemAlloc_v2")


@pytest.mark.parametrize("suffix", ["_ptds", "_ptsz"])
def test_each_call_has_the_form_for_per_thread_default_streams_that_cuda_has(device, suffix):
    names = json.loads(Path(__file__).with_name("per_thread_calls.json").read_text())[suffix]
    libraries = device.cuda, ctypes.CDLL(str(Path(build()).with_name("libcudart.so.13")))
    served = [name for name in names if any(hasattr(library, name) for library in libraries)]
    assert len(served) > len(names) / 2
    assert not [name for name in served if not any(hasattr(library, name + suffix) for library in libraries)]


@pytest.mark.parametrize("name", ["cuNoSuchCall", "cudaMalloc", "cublasCreate_v2", "vgpu_set_schedule", ""])
def test_unknown_entry_points_are_not_found(device, name):
    assert entry_point(device, name, 12000) == (None, 1)


CALLS = """
import ctypes, sys
cuda, table = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
cuda.vgpu_unsupported_calls.restype = ctypes.c_char_p
assert cuda.cuInit(0) == 0 and STEP
print(len(cuda.vgpu_unsupported_calls().splitlines()))
"""


@pytest.mark.parametrize(
    ("step", "noted"),
    [
        # Tables that NVIDIA's runtime requests where it is linked into a program: of CUDA 11 and 12, and of CUDA 13.
        ("cuda.cuGetExportTable(ctypes.byref(table), bytes.fromhex('d4082055bde6704b8d34ba123c66e1f2')) == 500", 1),
        ("cuda.cuGetExportTable(ctypes.byref(table), bytes.fromhex('f8cff95121468b4eb9e2fb469e7c0dd9')) == 500", 1),
        ("cuda.cuGetExportTable(ctypes.byref(table), bytes(16)) == 500", 0),
        ("cuda.cuGraphAddNode() == cuda.cuLogsCurrent() == cuda.cuStreamWaitValue32_v2() == 801", 3),
    ],
)
def test_what_is_not_supported_is_noted(device, step, noted):
    words = [sys.executable, "-c", CALLS.replace("STEP", step), build()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) == noted, done.stderr


class Config(ctypes.Structure):
    """The structure CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    )  # fmt: skip


class Attribute(ctypes.Structure):
    """The structure CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint * 16))


def test_a_librarys_kernel_is_launched_by_a_structure(device):
    cuda, library, function = device.cuda, ctypes.c_void_p(), ctypes.c_void_p()
    text = ADD_ONE.encode() + b"\0"
    assert cuda.cuLibraryLoadData(ctypes.byref(library), text, None, None, 0, None, None, 0) == 0
    assert cuda.cuLibraryGetKernel(ctypes.byref(function), library, b"nowhere") == 500
    assert cuda.cuLibraryGetKernel(ctypes.byref(function), library, b"k") == 0
    offset, size = ctypes.c_size_t(7), ctypes.c_size_t()
    assert cuda.cuKernelGetParamInfo(function, ctypes.c_size_t(0), ctypes.byref(offset), ctypes.byref(size)) == 0
    assert (offset.value, size.value) == (0, 8)
    assert cuda.cuKernelGetParamInfo(function, ctypes.c_size_t(1), ctypes.byref(offset), ctypes.byref(size)) == 1
    counter, result = device.allocate(4), np.zeros(1, np.uint32)
    cuda.cuMemsetD32_v2(counter, 0, ctypes.c_size_t(1))
    cluster, cooperative = Attribute(4), Attribute(2)
    cluster.value[:3], cooperative.value[0] = (1, 1, 1), 1
    attributes = (Attribute * 2)(cluster, cooperative)
    config = Config((3, 1, 1), (32, 2, 1), 0, None, ctypes.addressof(attributes), 2)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(counter))
    assert cuda.cuLaunchKernelEx(ctypes.byref(config), function, arguments, None) == 0
    cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(result.ctypes.data), counter, ctypes.c_size_t(4))
    assert result[0] == 3 * 64
    attributes[0].value[0] = 2
    assert cuda.cuLaunchKernelEx(ctypes.byref(config), function, arguments, None) == 801, "clusters are not here"
    cuda.cuMemFree_v2(counter)
    assert cuda.cuLibraryUnload(library) == 0


def test_a_module_is_read_from_a_file(device, tmp_path):
    module, path = ctypes.c_void_p(), tmp_path / "k.ptx"
    assert device.cuda.cuModuleLoad(ctypes.byref(module), str(path).encode()) == 301
    path.write_text(ADD_ONE)
    assert device.cuda.cuModuleLoad(ctypes.byref(module), str(path).encode()) == 0
    assert device.function(module)[0] == 0
    device.cuda.cuModuleUnload(module)


def test_pools_allocate_and_pitches_are_aligned(device):
    cuda, pool, memory, pitch = device.cuda, ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
    is_supported = ctypes.c_int()
    assert cuda.cuDeviceGetAttribute(ctypes.byref(is_supported), 115, 0) == 0 and is_supported.value == 1
    assert cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
    assert cuda.cuMemAllocFromPoolAsync(ctypes.byref(memory), ctypes.c_size_t(4096), pool, None) == 0
    used = ctypes.c_uint64()
    assert cuda.cuMemPoolGetAttribute(pool, 7, ctypes.byref(used)) == 0 and used.value >= 4096
    assert cuda.cuMemFreeAsync(memory, None) == 0
    assert (
        cuda.cuMemAllocPitch_v2(ctypes.byref(memory), ctypes.byref(pitch), ctypes.c_size_t(700), ctypes.c_size_t(3), 4)
        == 0
    )
    assert pitch.value == 1024
    assert cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(3 * 1024)) == 0 and cuda.cuMemFree_v2(memory) == 0
    huge = ctypes.c_size_t(1 << 62)
    assert cuda.cuMemAllocPitch_v2(ctypes.byref(memory), ctypes.byref(pitch), huge, huge, 4) == 1


def test_cuMemcpy3D_copies_a_box(device):
    """CUDA_MEMCPY3D copies from the second slice of the host's box to the first of the device's, and back."""
    depth, rows, width, pitch = 2, 3, 5, 8
    source = np.arange(4 * 4 * 8, dtype=np.uint8).reshape(4, 4, 8)
    memory, result = device.allocate(depth * rows * pitch), np.zeros((depth, rows, width), np.uint8)
    zeros = [0, 0, 0, 0]  # x, y, z, level
    device_side = [*zeros, 2, 0, memory.value, 0, 0, pitch, rows]
    copy_in = [1, 0, 1, 0, 1, source.ctypes.data, 0, 0, 0, 8, 4, *device_side, width, rows, depth]
    copy_out = [*device_side, *zeros, 1, result.ctypes.data, 0, 0, 0, width, rows, width, rows, depth]
    for fields in (copy_in, copy_out):
        assert device.cuda.cuMemcpy3D_v2((ctypes.c_uint64 * len(fields))(*fields)) == 0
    assert (result == source[1:3, :rows, 1 : 1 + width]).all()
    device.cuda.cuMemFree_v2(memory)


@pytest.mark.parametrize(
    ("error", "driver", "runtime"),
    [
        (0, b"CUDA_SUCCESS", b"cudaSuccess"),
        (1, b"CUDA_ERROR_INVALID_VALUE", b"cudaErrorInvalidValue"),
        (700, b"CUDA_ERROR_ILLEGAL_ADDRESS", b"cudaErrorIllegalAddress"),
        (801, b"CUDA_ERROR_NOT_SUPPORTED", b"cudaErrorNotSupported"),
        (12345, None, b"unrecognized error code"),
    ],
)
def test_errors_have_the_names_that_programs_compare(device, error, driver, runtime):
    text = ctypes.c_char_p()
    assert device.cuda.cuGetErrorName(error, ctypes.byref(text)) == (0 if driver else 1)
    device.cuda.cudaGetErrorName.restype = ctypes.c_char_p
    assert (text.value, device.cuda.cudaGetErrorName(error)) == (driver, runtime)


def test_unversioned_names_are_found(device):
    """Taichi looks up calls by name, and some of them without a version suffix."""
    cuda, handle, small_size, size = device.cuda, ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_size_t()
    for create, destroy in (("cuEventCreate", "cuEventDestroy"), ("cuStreamCreate", "cuStreamDestroy")):
        assert getattr(cuda, create)(ctypes.byref(handle), 0) == 0
        assert [getattr(cuda, destroy)(handle) for _ in range(2)] == [0, 400]
    assert cuda.cuCtxCreate(ctypes.byref(handle), 0, 0) == 0 and cuda.cuCtxPopCurrent(None) == 0
    assert cuda.cuCtxPushCurrent(handle) == cuda.cuCtxDestroy(handle) == 0
    assert cuda.cuDeviceTotalMem(ctypes.byref(small_size), 0) == cuda.cuDeviceTotalMem_v2(ctypes.byref(size), 0) == 0
    assert small_size.value == min(size.value, 2**32 - 1)
    assert cuda.cuMemAlloc(ctypes.byref(small_size), 16) == 201, "its addresses have 32 bits"
    assert cuda.cuImportExternalMemory(ctypes.byref(handle), None) == 801


def test_old_descriptors_of_arrays_have_sizes_of_32_bits(device):
    """Both forms describe the same array.  Fields: width, height, format (0x20: float), channels."""
    cuda, array = device.cuda, ctypes.c_void_p()
    assert cuda.cuArrayCreate(ctypes.byref(array), (ctypes.c_uint * 4)(5, 3, 0x20, 2)) == 0
    new, old = (ctypes.c_uint64 * 3)(), (ctypes.c_uint * 6)()
    assert cuda.cuArrayGetDescriptor_v2(new, array) == 0 and list(new) == [5, 3, 0x20 + (2 << 32)]
    assert cuda.cuArrayGetDescriptor(old, array) == 0 and list(old) == [5, 3, 0x20, 2, 0, 0]
    assert cuda.cuArrayDestroy(array) == 0
    assert cuda.cuArray3DCreate(ctypes.byref(array), (ctypes.c_uint * 6)(4, 3, 2, 0x20, 1, 0)) == 0
    assert cuda.cuArray3DGetDescriptor(old, array) == 0 and list(old) == [4, 3, 2, 0x20, 1, 0]
    assert cuda.cuArrayDestroy(array) == 0
    assert cuda.cuArrayCreate(ctypes.byref(array), None) == 1


def test_each_versioned_call_has_its_old_name(device):
    """As in NVIDIA's driver, of which programs look names up without a suffix."""
    if not shutil.which("nm"):
        pytest.skip("nm, of the binutils, lists the symbols")
    symbols = subprocess.run(["nm", "-D", device.library], capture_output=True, text=True, check=True).stdout.split()
    names = {symbol.split("@")[0] for symbol in symbols if symbol.startswith("cu") and symbol[2].isupper()}
    assert [name for name in names if name.endswith("_v2") and name.removesuffix("_v2") not in names] == []
