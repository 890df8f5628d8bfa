"""A program of ctypes alone that uses the device in a process of its own: soon begun, and it may end in a fault."""

import os
import subprocess
import sys
import textwrap

START = """
import ctypes, sys
cuda, at = ctypes.CDLL(sys.argv[1]), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
def load(text, name=b"k"):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\\0") == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    return function
def allocate(n):
    assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(n)) == 0
    return at.value
def free(at):
    assert cuda.cuMemFree_v2(ctypes.c_uint64(at)) == 0
def given(*values):
    held = (ctypes.c_uint64 * len(values))(*(one % 2**64 for one in values))
    made = (ctypes.c_void_p * len(values))(*(ctypes.addressof(held) + 8 * k for k in range(len(values))))
    made.held = held
    return made
def launch(function, *values, grid=1, block=1, shared=0):
    return cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, None, given(*values), None)
def words(at, count):
    made = (ctypes.c_uint32 * count)()
    assert cuda.cuMemcpyDtoH_v2(made, ctypes.c_uint64(at), ctypes.c_size_t(4 * count)) == 0
    return list(made)
"""


def run(device, code, text="", **environment):
    """(the numbers that it prints, what it says on standard error); `text` is its PTX."""
    before = {key: value for key, value in os.environ.items() if key != "VGPU_COMPUTE_CAPABILITY"}
    program = START + f"text = {text!r}\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, device.library],
        env={**before, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()], done.stderr
