"""Code without PTX is refused with the kernel's name, and the virtual GPU's ptxas keeps the PTX."""

import ctypes
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from virtual_device import build, kernel

ELF = b"\x7fELF\x02\x01\x01" + bytes(121)
TEXT = kernel("ld.param.u64 %l0, [p0]; st.global.u32 [%l0], 7;", ["p0"])


def container(*elements):
    """Return a fatbin of elements (kind, architecture, code); kind 1 is PTX, 2 a cubin; 70 is sm_70."""
    body = b""
    for kind, arch, code in elements:
        header = np.zeros(16, "<u4")
        header[0], header[1], header[2], header[7] = kind, 64, len(code), arch
        body += header.tobytes() + code
    return np.array([0xBA55ED50, 0x00100001, len(body), 0], "<u4").tobytes() + body


def load(cuda, image):
    """Load the image; return CUDA's result and the module."""
    module, keep = ctypes.c_void_p(), ctypes.create_string_buffer(image, len(image))
    return cuda.cuModuleLoadData(ctypes.byref(module), keep), module


@pytest.mark.parametrize("image", [ELF, container((2, 70, ELF)), container((1, 100, TEXT.encode() + b"\0"))])
def test_its_kernel_is_named_when_it_is_to_run(device, image):
    cuda, function = device.cuda, ctypes.c_void_p()
    cuda.vgpu_unsupported_calls.restype = cuda.vgpu_last_error.restype = ctypes.c_char_p
    cuda.vgpu_clear_unsupported_calls()
    code, module = load(cuda, image)
    assert code == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"ncclKernel") == 0
    assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 209
    assert cuda.vgpu_unsupported_calls().startswith(b"ncclKernel: ")
    assert b"without PTX" in cuda.vgpu_last_error()
    assert cuda.cuModuleGetGlobal_v2(None, None, module, b"x") == 500
    cuda.cuModuleUnload(module)
    cuda.vgpu_clear_unsupported_calls()
    assert device.run(TEXT, [np.zeros(4, np.uint32)])[1][0][0] == 7  # later launches run


def test_a_damaged_container_is_refused_at_once(device):
    assert load(device.cuda, container((1, 70, b"no PTX at all\0")))[0] == 200
    assert load(device.cuda, container((2, 70, ELF))[:8] + b"\xff" * 64)[0] == 200


def ptxas(*arguments):
    """Run the virtual GPU's ptxas."""
    return subprocess.run(
        [str(Path(build()).parent / "ptxas"), *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("before", [["-arch=sm_90", "--warn-on-spills"], ["-arch", "sm_70", "-v", "-O3"], []])
def test_ptxas_keeps_the_ptx(device, tmp_path, before):
    source, cubin = tmp_path / "a b.ptx", tmp_path / "out.cubin"
    source.write_text(TEXT)
    assert ptxas(*before, source, "-o", cubin).returncode == 0
    assert cubin.read_bytes() == TEXT.encode() + b"\0"
    code, module = load(device.cuda, cubin.read_bytes())
    assert code == 0
    device.cuda.cuModuleUnload(module)


def test_ptxas_says_a_version_that_frameworks_read(tmp_path):
    assert "release 12.5, V12.5.82" in ptxas("--version").stdout
    assert ptxas(tmp_path / "none", "-o", tmp_path / "out").returncode == 1


def zstd_frame(content):
    """Return a zstd frame of raw blocks, each of at most 128 KiB."""
    blocks = [content[offset : offset + 100_000] for offset in range(0, len(content), 100_000)]
    heads = [(len(block) << 3 | (k == len(blocks) - 1)).to_bytes(3, "little") for k, block in enumerate(blocks)]
    body = b"".join(head + block for head, block in zip(heads, blocks, strict=True))
    return b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little") + body


def zstd_container(kind, content, unpacked):
    """Return a fatbin with one element that zstd compressed."""
    # The size of the header is 80, that of the packed code follows twice, 70 is sm_70, and 0x8011 are flags.
    element = struct.pack(
        "<HHIQIIIIQQQQ", kind, 0x101, 80, len(content), len(content), 64, 0, 70, 0x8011, 0, 0, unpacked
    )
    body = element + bytes(80 - len(element)) + content
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_a_zstd_compressed_container_is_read(device):
    text = TEXT.encode() + b"\0"
    code, module = load(device.cuda, zstd_container(1, zstd_frame(text), len(text)))
    assert code == 0
    function = ctypes.c_void_p()
    assert device.cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
    device.cuda.cuModuleUnload(module)


def test_damaged_zstd_data_are_refused(device):
    text = TEXT.encode() + b"\0"
    device.cuda.vgpu_last_error.restype = ctypes.c_char_p
    for content in (zstd_frame(text)[:-40], zstd_frame(text)[:9] + b"\xff" * 40, zstd_frame(text * 2)):
        assert load(device.cuda, zstd_container(1, content, len(text)))[0] == 200
        assert b"zstd" in device.cuda.vgpu_last_error()
