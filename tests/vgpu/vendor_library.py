"""Calls vendor libraries with CPU fallbacks: a second copy of the device's library, with the fallbacks switched on."""

import contextlib
import ctypes
import os
import shutil

import numpy as np
from virtual_device import Device, build

# {NumPy type: (letter in names of cuBLAS, number of the cudaDataType)}; DNN: {NumPy type: number of the cudnnDataType}
BLAS = {"float32": ("S", 0), "float64": ("D", 1), "float16": ("H", 2), "complex64": ("C", 4), "complex128": ("Z", 5)}
DNN = {"float32": 0, "float64": 1, "float16": 2}


def tolerance(dtype, terms=1):
    """Return the rounding error permitted in a sum of `terms` terms of magnitude one."""
    return float(np.finfo(dtype).eps) * (4 + terms)


class Library(Device):
    """A copy of the library for these tests alone, as a library reads VGPU_CPU_FALLBACKS once."""

    def __init__(self, folder, fallbacks="all"):
        path = folder / "libvgpu-cpu-fallbacks.so"
        shutil.copy(build(), path)
        os.environ["VGPU_CPU_FALLBACKS"] = fallbacks
        try:
            super().__init__(str(path))
            with contextlib.suppress(NotImplementedError):  # without fallbacks
                self.status("cublasSscal_v2", None, 0, self.scalar(1, "float32"), None, 1)  # reads the variable
        finally:
            del os.environ["VGPU_CPU_FALLBACKS"]
        self.cuda.vgpu_fallback_calls.restype = ctypes.c_char_p
        self.kept = []

    def fallback_calls(self):
        """Return the names of the calls that CPU fallbacks computed."""
        return self.cuda.vgpu_fallback_calls().decode().splitlines()

    def status(self, name, *arguments):
        """Call a function and return its status; integers are passed as C's int."""
        return getattr(self.cuda, name)(*[self.to_ctypes(argument) for argument in arguments])

    def call(self, name, *arguments):
        """Call a function that must succeed."""
        status = self.status(name, *arguments)
        assert status == 0, f"{name}: {status}"

    def to_ctypes(self, argument):
        """Return an argument as ctypes passes it: arrays by address, integers as int."""
        if isinstance(argument, np.ndarray):
            return argument.ctypes.data_as(ctypes.c_void_p)
        return ctypes.c_int(argument) if isinstance(argument, int) else argument

    def scalar(self, value, dtype):
        """Return a pointer to the value in host memory, which stays valid for the next 64 calls."""
        self.kept = [*getattr(self, "kept", [])[-64:], np.array([value], dtype)]
        return self.kept[-1].ctypes.data_as(ctypes.c_void_p)

    def put(self, values):
        """Copy an array to an allocation of the device of just that size, and return its address."""
        address = self.allocate(values.nbytes)
        data = np.ascontiguousarray(values)
        assert self.cuda.cuMemcpyHtoD_v2(address, self.to_ctypes(data), ctypes.c_size_t(data.nbytes)) == 0
        return address

    def get(self, address, shape, dtype):
        """Copy an array from the device."""
        values = np.zeros(shape, dtype)
        assert self.cuda.cuMemcpyDtoH_v2(self.to_ctypes(values), address, ctypes.c_size_t(values.nbytes)) == 0
        return values

    def capture(self, stream, call):
        """Return an executable graph of what call() asks of the stream."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.cuda.cuStreamBeginCapture_v2(stream, 0) == 0
        call()
        assert self.cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
        assert self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
        return executable

    def launch_graph(self, executable, stream):
        """Launch an executable graph on the stream, and wait for it."""
        assert self.cuda.cuGraphLaunch(executable, stream) == 0
        assert self.cuda.cuStreamSynchronize(stream) == 0

    def pointers(self, addresses):
        """Copy an array of addresses to the device; return its address."""
        return self.put(np.array([address.value for address in addresses], np.uint64))

    def descriptor(self, kind, *settings, nd=True):
        """Create a descriptor of cuDNN of that kind, and set it; nd: by the call for any number of dimensions."""
        descriptor = ctypes.c_void_p()
        self.call(f"cudnnCreate{kind}Descriptor", ctypes.byref(descriptor))
        self.call(f"cudnnSet{kind}{'Nd' if nd else ''}Descriptor", descriptor, *settings)
        return descriptor

    def tensor(self, shape, dtype, channels_last=False):
        """Create a tensor descriptor for a shape in the order samples, channels, space."""
        order = [0, *range(2, len(shape)), 1] if channels_last else range(len(shape))
        strides, stride = [0] * len(shape), 1
        for k in reversed(list(order)):
            strides[k], stride = stride, stride * shape[k]
        return self.descriptor("Tensor", DNN[dtype], len(shape), ints(shape), ints(strides))

    def put_tensor(self, values, channels_last=False):
        """Copy a tensor to the device in that layout."""
        return self.put(np.moveaxis(values, 1, -1) if channels_last else values)

    def get_tensor(self, address, shape, dtype, channels_last=False):
        """Copy a tensor from the device in that layout."""
        if not channels_last:
            return self.get(address, shape, dtype)
        return np.moveaxis(self.get(address, [shape[0], *shape[2:], shape[1]], dtype), -1, 1)


def ints(values):
    """Return the numbers as a C array of int."""
    return (ctypes.c_int * len(values))(*values)
