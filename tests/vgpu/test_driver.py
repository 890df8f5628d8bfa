"""Calls of the driver that frameworks make, besides launches and plain copies."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from virtual_device import HEAD


@pytest.mark.parametrize("version", ["", "_v2", "_v3"])
@pytest.mark.parametrize("prefix", ["cu", "cuda"])
def test_no_stream_is_captured(device, prefix, version):
    """TensorFlow 2.15 calls this before each copy on the device, and requires success."""
    state = ctypes.c_int(7)
    runtime = ctypes.CDLL(str(Path(device.library).with_name("libcudart.so.12")))
    get_info = getattr({"cu": device.cuda, "cuda": runtime}[prefix], f"{prefix}StreamGetCaptureInfo{version}")
    assert get_info(None, ctypes.byref(state), None, None, None, None, None) == 0
    assert state.value == 0


def test_a_rectangle_is_copied(device):
    """The driver's structure copies to the device, and the runtime's call copies back."""
    rows, width, pitch = 5, 12, 32
    source = np.arange(rows * 16, dtype=np.uint8)
    result, address = np.zeros(rows * 16, np.uint8), device.allocate(rows * pitch)
    fields = [1, 0, 1, source.ctypes.data, 0, 0, 16, 2, 0, 2, 0, address.value, 0, pitch, width, rows]
    assert device.cuda.cuMemcpy2D_v2((ctypes.c_uint64 * 16)(*fields)) == 0
    arguments = [ctypes.c_void_p(result.ctypes.data), 16, ctypes.c_void_p(address.value + 2), pitch, width, rows]
    arguments = [ctypes.c_size_t(value) if isinstance(value, int) else value for value in arguments]
    assert device.cuda.cudaMemcpy2D(*arguments, 2) == 0
    assert (result.reshape(rows, 16)[:, :width] == source.reshape(rows, 16)[:, 1 : width + 1]).all()
    assert not result.reshape(rows, 16)[:, width:].any()
    device.cuda.cuMemFree_v2(address)


@pytest.mark.parametrize(
    ("name", "kind"), [("cuMemsetD2D8_v2", "u1"), ("cuMemsetD2D16_v2", "u2"), ("cuMemsetD2D32_v2", "u4")]
)
def test_a_rectangle_is_filled(device, name, kind):
    rows, width, pitch = 4, 3, 32
    address, result = device.allocate(rows * pitch), np.zeros((rows, pitch), np.uint8)
    fill = getattr(device.cuda, name)
    assert fill(address, ctypes.c_size_t(pitch), 7, ctypes.c_size_t(width), ctypes.c_size_t(rows)) == 0
    device.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(result.ctypes.data), address, ctypes.c_size_t(result.nbytes))
    expected = np.zeros((rows, pitch // np.dtype(kind).itemsize), kind)
    expected[:, :width] = 7
    assert (result.view(kind) == expected).all()
    device.cuda.cuMemFree_v2(address)


def test_kernels_are_listed_by_name(device):
    count, name = ctypes.c_uint(), ctypes.c_char_p()
    _, module = device.load(HEAD + ".visible .entry b() { ret; }\n.entry a() { ret; }\n.func f() { ret; }")
    assert device.cuda.cuModuleGetFunctionCount(ctypes.byref(count), module) == 0
    functions = (ctypes.c_void_p * 3)()
    assert device.cuda.cuModuleEnumerateFunctions(functions, count, module) == 0
    names = []
    for function in functions[: count.value]:
        device.cuda.cuFuncGetName(ctypes.byref(name), ctypes.c_void_p(function))
        names.append(name.value)
    assert (names, functions[2]) == ([b"a", b"b"], None)
    device.cuda.cuModuleUnload(module)


def test_a_block_size_is_proposed(device):
    grid, block = ctypes.c_int(), ctypes.c_int()
    propose = device.cuda.cuOccupancyMaxPotentialBlockSize
    _, function = device.function(device.load(HEAD + ".visible .entry k() { ret; }")[1])
    assert propose(ctypes.byref(grid), ctypes.byref(block), function, None, ctypes.c_size_t(0), 256) == 0
    assert (block.value, grid.value % 2) == (256, 0)
    assert propose(ctypes.byref(grid), ctypes.byref(block), None, None, ctypes.c_size_t(0), 256) == 400


@pytest.mark.parametrize("error", [-1, 12345, 998])
def test_an_unknown_error_code_has_no_name_and_no_description(device, error):
    for call in (device.cuda.cuGetErrorString, device.cuda.cuGetErrorName):
        text = ctypes.c_char_p(b"before")
        assert (call(error, ctypes.byref(text)), text.value) == (1, None)  # CUDA_ERROR_INVALID_VALUE
        assert call(700, ctypes.byref(text)) == 0
        assert text.value
    device.cuda.cudaGetErrorString.restype = ctypes.c_char_p
    assert device.cuda.cudaGetErrorString(error) == b"unrecognized error code"
