"""A runner for kernels of a container (fatbin or cubin), with each list of launches in a process of its own."""

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
    """A kernel, its grid and block, and its arguments: numbers, structures as bytes, and arrays.

    Arrays are passed by their addresses, and come back as the kernel left them.
    """

    def __init__(self, kernel, grid, block, arguments, shared=0, cooperative=False):
        self.kernel, self.grid, self.block, self.arguments, self.shared = kernel, grid, block, arguments, shared
        self.cooperative = cooperative


def run_image(image, launches, code="sass", schedule="serial", **environment):
    """Run launches in a new process; return (CUDA's result, arrays) of each launch, and standard error."""
    variables = {
        "VGPU_CODE": code,
        "VGPU_SCHEDULE": schedule,
        "VGPU_COMPUTE_CAPABILITY": "80",
        "VGPU_MAX_INSTRUCTIONS": "200000000",
        **environment,
    }
    process = subprocess.run(
        [sys.executable, __file__],
        input=pickle.dumps((build(), image, launches)),
        capture_output=True,
        env={**os.environ, **variables},
        timeout=300,
    )
    assert process.returncode == 0, f"the process ended with {process.returncode}: {process.stderr.decode()}"
    return pickle.loads(process.stdout), process.stderr.decode()


def as_argument(value):
    """Return a number or a structure as ctypes passes it."""
    return (ctypes.c_char * len(value)).from_buffer_copy(value) if isinstance(value, bytes) else ctypes.c_int(value)


class ContainerDevice(Device):
    """The device with a container loaded."""

    def __init__(self, library, image):
        super().__init__(library)
        self.loaded, self.module = self.load(image)

    def launch(self, launch):
        """Launch a kernel; return CUDA's result and the arrays as the kernel left them (none if it does not load)."""
        result, function = (self.loaded, None) if self.loaded else self.function(self.module, launch.kernel)
        if result:
            return result, []
        arrays = [np.array(value) for value in launch.arguments if isinstance(value, np.ndarray)]
        addresses = iter([self.copy_in(array) for array in arrays])
        arguments = [
            next(addresses) if isinstance(value, np.ndarray) else as_argument(value) for value in launch.arguments
        ]
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(argument) for argument in arguments])
        size = (launch.grid, 1, 1, launch.block, 1, 1, launch.shared)
        if launch.cooperative:
            result = self.cuda.cuLaunchCooperativeKernel(function, *size, None, pointers)
        else:
            result = self.cuda.cuLaunchKernel(function, *size, None, pointers, None)
        for address, array in zip(
            (value for value in arguments if isinstance(value, ctypes.c_uint64)), arrays, strict=True
        ):
            self.copy_out(address, array)
        return result, arrays


def main():
    library, image, launches = pickle.load(sys.stdin.buffer)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what kernels print
    device = ContainerDevice(library, image)
    results = [device.launch(launch) for launch in launches]
    output.write(pickle.dumps(results))
    output.close()


if __name__ == "__main__":
    from containers import main as start  # as the module that the pickle names

    start()
