"""Runs kernels of a container of GPU code, each list of launches in a process of its own."""

import ctypes
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

KERNELS = Path(__file__).with_name("kernels")


class Launch:
    """A kernel, its grid and block, and its arguments, of which arrays go by their addresses and come back changed."""

    def __init__(self, kernel, grid, block, arguments, shared=0):
        self.kernel, self.grid, self.block, self.arguments, self.shared = kernel, grid, block, arguments, shared


def run(image, launches, code="sass", schedule="serial", **environment):
    """(CUDA's result, arrays) of each launch, and standard error."""
    from virtual_device import build

    given = {
        "VGPU_CODE": code,
        "VGPU_SCHEDULE": schedule,
        "VGPU_COMPUTE_CAPABILITY": "80",
        "VGPU_MAX_INSTRUCTIONS": "200000000",
        **environment,
    }
    done = subprocess.run(
        [sys.executable, __file__],
        input=pickle.dumps((build(), image, launches)),
        capture_output=True,
        env={**os.environ, **given},
        timeout=300,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr.decode()}"
    return pickle.loads(done.stdout), done.stderr.decode()


class Device:
    def __init__(self, library, image):
        self.cuda, self.module, context = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_void_p()
        self.cuda.cuInit(0)
        self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
        held = ctypes.create_string_buffer(image, len(image))
        self.loaded = self.cuda.cuModuleLoadData(ctypes.byref(self.module), held)

    def copy_in(self, array):
        at = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(max(array.nbytes, 1))) == 0
        self.cuda.cuMemcpyHtoD_v2(at, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return at

    def run(self, launch):
        if self.loaded:
            return self.loaded, []
        function = ctypes.c_void_p()
        result = self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, launch.kernel.encode())
        if result:
            return result, []
        arrays = [np.array(one) for one in launch.arguments if isinstance(one, np.ndarray)]
        places = iter([self.copy_in(one) for one in arrays])
        given = [next(places) if isinstance(one, np.ndarray) else ctypes.c_int(one) for one in launch.arguments]
        pointers = (ctypes.c_void_p * len(given))(*[ctypes.addressof(one) for one in given])
        size = (launch.grid, 1, 1, launch.block, 1, 1, launch.shared)
        result = self.cuda.cuLaunchKernel(function, *size, None, pointers, None)
        for at, one in zip((one for one in given if isinstance(one, ctypes.c_uint64)), arrays, strict=True):
            self.cuda.cuMemcpyDtoH_v2(one.ctypes.data_as(ctypes.c_void_p), at, ctypes.c_size_t(one.nbytes))
            self.cuda.cuMemFree_v2(at)
        return result, arrays


def main():
    library, image, launches = pickle.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what kernels print
    device = Device(library, image)
    results = [device.run(one) for one in launches]
    answer.write(pickle.dumps(results))
    answer.close()


if __name__ == "__main__":
    from containers import main as start  # as the module that the pickle names

    start()
