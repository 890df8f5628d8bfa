"""Runs kernels of a container of GPU code, each list of launches in a process of its own."""

import ctypes
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
from virtual_device import Device, build

KERNELS = Path(__file__).with_name("kernels")


class Launch:
    """A kernel, its grid and block, and its arguments: numbers, structures as bytes, and arrays, which go by their
    addresses and come back changed."""

    def __init__(self, kernel, grid, block, arguments, shared=0):
        self.kernel, self.grid, self.block, self.arguments, self.shared = kernel, grid, block, arguments, shared


def run(image, launches, code="sass", schedule="serial", **environment):
    """(CUDA's result, arrays) of each launch, and standard error."""
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


def as_argument(value):
    return (ctypes.c_char * len(value)).from_buffer_copy(value) if isinstance(value, bytes) else ctypes.c_int(value)


class ContainerDevice(Device):
    def __init__(self, library, image):
        super().__init__(library)
        self.loaded, self.module = self.load(image)

    def launch(self, launch):
        """CUDA's result and the arrays as the kernel left them; none where it does not load."""
        result, function = (self.loaded, None) if self.loaded else self.function(self.module, launch.kernel)
        if result:
            return result, []
        arrays = [np.array(one) for one in launch.arguments if isinstance(one, np.ndarray)]
        places = iter([self.copy_in(one) for one in arrays])
        given = [next(places) if isinstance(one, np.ndarray) else as_argument(one) for one in launch.arguments]
        pointers = (ctypes.c_void_p * len(given))(*[ctypes.addressof(one) for one in given])
        size = (launch.grid, 1, 1, launch.block, 1, 1, launch.shared)
        result = self.cuda.cuLaunchKernel(function, *size, None, pointers, None)
        for at, one in zip((one for one in given if isinstance(one, ctypes.c_uint64)), arrays, strict=True):
            self.copy_out(at, one)
        return result, arrays


def main():
    library, image, launches = pickle.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what kernels print
    device = ContainerDevice(library, image)
    results = [device.launch(one) for one in launches]
    answer.write(pickle.dumps(results))
    answer.close()


if __name__ == "__main__":
    from containers import main as start  # as the module that the pickle names

    start()
