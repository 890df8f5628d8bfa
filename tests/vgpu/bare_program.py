"""A runner of short ctypes programs, each in a process of its own, which starts fast and may end with a fault."""

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


def run_program(device, code, text="", **environment):
    """Run `code` behind START; return the numbers that it prints, and its standard error.

    `text` is the PTX that the program finds in its variable of that name.
    """
    inherited = {key: value for key, value in os.environ.items() if key != "VGPU_COMPUTE_CAPABILITY"}
    program = START + f"text = {text!r}\n" + textwrap.dedent(code)
    process = subprocess.run(
        [sys.executable, "-S", "-c", program, device.library],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return [int(number) for number in process.stdout.split()], process.stderr
