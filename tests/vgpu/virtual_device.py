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
LOAD = """.reg .b32 %r9, %n; ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1;
ld.global.u32 %n, [%l0];"""  # the thread's own word
STORE = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l0, %l0, %l1; st.global.u32 [%l0], %r9;"
SCRATCH = ".reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<8>;\n.reg .b64 %l<8>;\n"


def build():
    """The library's path; VGPU_LIBRARY names another one."""
    if os.environ.get("VGPU_LIBRARY"):
        return os.environ["VGPU_LIBRARY"]
    try:
        return str(builder.build(builder.cache()) / "libvgpu.so")
    except builder.NoCompiler as error:
        pytest.skip(str(error))


def kernel(body, parameters, name="k", head=""):
    """A kernel with 64-bit parameters: %i is the thread's number in the grid, %t its number in the block."""
    declared = ", ".join(f".param .b64 {one}" for one in parameters)
    return f"""{HEAD}{head}
.visible .entry {name}({declared}) {{
{SCRATCH}.reg .b32 %i, %t;
mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %r0, %ntid.x; mad.lo.u32 %i, %i, %r0, %t;
{body}
}}
"""


def word(dtype):
    return f"b{8 * np.dtype(dtype).itemsize}"


def register(dtype):
    return f"b{max(16, 8 * np.dtype(dtype).itemsize)}"


class Device:
    """The library in this process.  After a fault nothing runs any more: see `apart`."""

    def __init__(self, library):
        self.library = library
        self.cuda = ctypes.CDLL(library)
        context = ctypes.c_void_p()
        self.cuda.cuInit(0)
        self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)

    def load(self, image):
        """CUDA's result and the module of a text, or of a container's bytes."""
        module = ctypes.c_void_p()
        data = image if isinstance(image, bytes) else image.encode("utf-8", "surrogateescape") + b"\0"
        return self.cuda.cuModuleLoadData(ctypes.byref(module), data), module

    def function(self, module, name="k"):
        """Found and decoded; the first result that is an error."""
        function, threads = ctypes.c_void_p(), ctypes.c_int()
        result = self.cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        if result == 0:
            result = self.cuda.cuFuncGetAttribute(ctypes.byref(threads), 0, function)
        return result, function

    def assert_refused(self, text):
        """The module loads, and its kernel `k` is refused."""
        result, module = self.load(text)
        assert result == 0
        assert self.function(module)[0] != 0
        self.cuda.cuModuleUnload(module)

    def allocate(self, nbytes):
        at = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(max(nbytes, 1))) == 0
        return at

    def stream(self, flags):
        made = ctypes.c_void_p()
        assert self.cuda.cuStreamCreate(ctypes.byref(made), flags) == 0
        return made

    def event(self):
        made = ctypes.c_void_p()
        assert self.cuda.cuEventCreate(ctypes.byref(made), 0) == 0
        return made

    def copy_in(self, array):
        at = self.allocate(array.nbytes)
        self.cuda.cuMemcpyHtoD_v2(at, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return at

    def copy_out(self, at, array):
        """Into the array; the device's memory is freed."""
        self.cuda.cuMemcpyDtoH_v2(array.ctypes.data_as(ctypes.c_void_p), at, ctypes.c_size_t(array.nbytes))
        self.cuda.cuMemFree_v2(at)

    def run(self, text, arrays, grid=1, block=32, shared=0, name="k"):
        """CUDA's result and the arrays as the kernel left them; a parameter points to each, integers go as they are."""
        result, module = self.load(text)
        if result:
            return result, arrays
        result, function = self.function(module, name)
        values = [one if isinstance(one, int) else np.ascontiguousarray(one).copy() for one in arrays]
        given = [ctypes.c_uint64(one) if isinstance(one, int) else self.copy_in(one) for one in values]
        if result == 0:
            pointers = (ctypes.c_void_p * len(given))(*[ctypes.addressof(one) for one in given])
            result = self.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, None, pointers, None)
        for at, one in zip(given, values, strict=True):
            if not isinstance(one, int):
                self.copy_out(at, one)
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
        for name, what in names:
            text += f".reg .{register(what if isinstance(what, type) else what.dtype)} %{name};\n"
        for k, one in enumerate(operands):
            text += f"ld.param.u64 %at, [p{k}]; mul.wide.u32 %offset, %i, {one.itemsize}; add.u64 %at, %at, %offset;\n"
            text += f"ld.global.{word(one.dtype)} %{NAMES[k]}, [%at];\n"
        text += body + "\n"
        for k, one in enumerate(out, len(operands)):
            size = np.dtype(one).itemsize
            text += f"ld.param.u64 %at, [p{k}]; mul.wide.u32 %offset, %i, {size}; add.u64 %at, %at, %offset;\n"
            text += f"st.global.{word(one)} [%at], %{'defg'[k - len(operands)]};\n"
        arrays = [*operands, *(np.zeros(count, one) for one in out)]
        text = kernel(text, [f"p{k}" for k in range(len(arrays))], head=head)
        result, arrays = self.run(text, arrays, (count + 127) // 128, 128)
        assert result == 0, f"CUDA's error {result} for {body}"
        made = arrays[len(operands) :]
        return made[0] if len(out) == 1 else made

    def run_in_child(self, text, arrays, schedule="serial", limit=10**7, variables=(), **how):
        """The same as `run` in a child process, as a fault ends a CUDA context and a process has one schedule.

        variables: more of its environment.  Returns (CUDA's result, arrays, standard error).
        """
        environment = {**os.environ, "VGPU_SCHEDULE": schedule, "VGPU_MAX_INSTRUCTIONS": str(limit), **dict(variables)}
        wanted = pickle.dumps((self.library, text, arrays, how))
        done = subprocess.run(
            [sys.executable, __file__], input=wanted, capture_output=True, env=environment, timeout=120
        )
        assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr.decode()}"
        return *pickle.loads(done.stdout), done.stderr.decode()


def main():
    library, text, arrays, how = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(Device(library).run(text, arrays, **how)))


if __name__ == "__main__":
    main()
