"""Builds the device's library once and runs small kernels of PTX text over arrays of operands."""

import ctypes
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "vgpu"))
import build as builder

NAMES = "xyzwuv"  # the operands' registers
HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
# PTX that reads the thread's value of the array p0 into %n, writes %r9 back, and declares registers.
LOAD = """.reg .b32 %r9, %n; ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1;
ld.global.u32 %n, [%l0];"""  # the thread's own word
STORE = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; st.global.u32 [%l0], %r9;"
SCRATCH = ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<8>;\n.reg .b64 %l<8>;\n"


def build():
    """Build the device's library, or take the one that VGPU_LIBRARY names, and return its path."""
    if os.environ.get("VGPU_LIBRARY"):
        return os.environ["VGPU_LIBRARY"]
    try:
        return str(builder.build(builder.cache()) / "libvgpu.so")
    except builder.NoCompiler as error:
        pytest.skip(str(error))


def kernel(body, parameters, name="k", head=""):
    """Return the text of a kernel with 64-bit parameters; head: declarations before it.

    %i is the thread's index in the grid, %t in the block; registers %r, %l, %h and %p 0 to 7 are declared.
    """
    parameter_list = ", ".join(f".param .b64 {parameter}" for parameter in parameters)
    return f"""{HEAD}{head}
.visible .entry {name}({parameter_list}) {{
{SCRATCH}.reg .b32 %i, %t;
mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %r0, %ntid.x; mad.lo.u32 %i, %i, %r0, %t;
{body}
}}
"""


def sized_type(dtype):
    """Return the PTX type that holds the bits of a NumPy type in memory."""
    return f"b{8 * np.dtype(dtype).itemsize}"


def register(dtype):
    """Return the PTX type of a register for a NumPy type: at least 16 bits."""
    return f"b{max(16, 8 * np.dtype(dtype).itemsize)}"


class Device:
    """The library in this process. A fault ends its CUDA context, so tests of faults use `run_in_child`."""

    def __init__(self, library):
        self.library = library
        self.cuda = ctypes.CDLL(library)
        context = ctypes.c_void_p()
        self.cuda.cuInit(0)
        self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)

    def load(self, image):
        """Load a PTX text or the bytes of a container; return CUDA's result and the module."""
        module = ctypes.c_void_p()
        data = image if isinstance(image, bytes) else image.encode("utf-8", "surrogateescape") + b"\0"
        return self.cuda.cuModuleLoadData(ctypes.byref(module), data), module

    def function(self, module, name="k"):
        """Find and decode a kernel; return the first CUDA error, or 0, and the function."""
        function, threads = ctypes.c_void_p(), ctypes.c_int()
        result = self.cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        if result == 0:
            result = self.cuda.cuFuncGetAttribute(ctypes.byref(threads), 0, function)
        return result, function

    def assert_refused(self, text):
        """Assert that the module loads and its kernel `k` is refused."""
        result, module = self.load(text)
        assert result == 0
        assert self.function(module)[0] != 0
        self.cuda.cuModuleUnload(module)

    def allocate(self, nbytes):
        """Allocate memory of the device; return its address."""
        address = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1))) == 0
        return address

    def stream(self, flags):
        """Create a stream."""
        stream = ctypes.c_void_p()
        assert self.cuda.cuStreamCreate(ctypes.byref(stream), flags) == 0
        return stream

    def event(self):
        """Create an event."""
        event = ctypes.c_void_p()
        assert self.cuda.cuEventCreate(ctypes.byref(event), 0) == 0
        return event

    def copy_in(self, array):
        """Copy an array to new memory of the device; return its address."""
        address = self.allocate(array.nbytes)
        self.cuda.cuMemcpyHtoD_v2(address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return address

    def copy_out(self, address, array):
        """Copy the device's memory into the array and free it."""
        self.cuda.cuMemcpyDtoH_v2(array.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(array.nbytes))
        self.cuda.cuMemFree_v2(address)

    def run(self, text, arrays, grid=1, block=32, shared=0, name="k"):
        """Run a kernel; return CUDA's result and the arrays after the launch.

        Each array is copied to the device and passed by its address; integers are passed by value.
        """
        result, module = self.load(text)
        if result:
            return result, arrays
        result, function = self.function(module, name)
        values = [value if isinstance(value, int) else np.ascontiguousarray(value).copy() for value in arrays]
        arguments = [ctypes.c_uint64(value) if isinstance(value, int) else self.copy_in(value) for value in values]
        if result == 0:
            pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(value) for value in arguments])
            result = self.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, None, pointers, None)
        for address, value in zip(arguments, values, strict=True):
            if not isinstance(value, int):
                self.copy_out(address, value)
        self.cuda.cuModuleUnload(module)
        return result, values

    def evaluate(self, body, out, *operands, head=""):
        """Run instructions once for each tuple of operands.

        body: PTX that reads the operands from %x, %y, ... and writes results to %d, %e, ...; out: their NumPy types.
        Returns one array of results, or a list if `out` has several types.
        """
        count = len(operands[0])
        text = f".reg .b64 %at, %offset;\nsetp.ge.u32 %p7, %i, {count};\n@%p7 exit;\n"
        names = list(zip(NAMES, operands, strict=False)) + list(zip("defg", out, strict=False))
        for name, operand in names:
            text += f".reg .{register(operand if isinstance(operand, type) else operand.dtype)} %{name};\n"
        for k, operand in enumerate(operands):
            text += (
                f"ld.param.u64 %at, [p{k}]; mul.wide.u32 %offset, %i, {operand.itemsize}; add.u64 %at, %at, %offset;\n"
            )
            text += f"ld.global.{sized_type(operand.dtype)} %{NAMES[k]}, [%at];\n"
        text += body + "\n"
        for k, dtype in enumerate(out, len(operands)):
            size = np.dtype(dtype).itemsize
            text += f"ld.param.u64 %at, [p{k}]; mul.wide.u32 %offset, %i, {size}; add.u64 %at, %at, %offset;\n"
            text += f"st.global.{sized_type(dtype)} [%at], %{'defg'[k - len(operands)]};\n"
        arrays = [*operands, *(np.zeros(count, dtype) for dtype in out)]
        text = kernel(text, [f"p{k}" for k in range(len(arrays))], head=head)
        result, arrays = self.run(text, arrays, (count + 127) // 128, 128)
        assert result == 0, f"CUDA's error {result} for {body}"
        results = arrays[len(operands) :]
        return results[0] if len(out) == 1 else results

    def run_in_child(self, text, arrays, schedule="serial", limit=10**7, variables=(), **options):
        """Do what `run` does, in a child process, as a fault ends a CUDA context and a process has one schedule.

        variables: additional environment variables.  Returns (CUDA's result, arrays, standard error).
        """
        environment = {**os.environ, "VGPU_SCHEDULE": schedule, "VGPU_MAX_INSTRUCTIONS": str(limit), **dict(variables)}
        request = pickle.dumps((self.library, text, arrays, options))
        process = subprocess.run(
            [sys.executable, __file__], input=request, capture_output=True, env=environment, timeout=120
        )
        assert process.returncode == 0, f"the process ended with {process.returncode}: {process.stderr.decode()}"
        return *pickle.loads(process.stdout), process.stderr.decode()


def main():
    library, text, arrays, options = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(Device(library).run(text, arrays, **options)))


if __name__ == "__main__":
    main()
