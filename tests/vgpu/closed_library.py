"""Stand-ins of closed libraries in this process: a library of their own, switched on, with memory on its device."""

import ctypes
import os
import shutil

import numpy as np
from virtual_device import Device, build

BLAS = {"float32": ("S", 0), "float64": ("D", 1), "float16": ("H", 2), "complex64": ("C", 4), "complex128": ("Z", 5)}
DNN = {"float32": 0, "float64": 1, "float16": 2}


def tolerance(dtype, terms=1):
    """What the rounding of a sum of so many terms of size one may come to."""
    return float(np.finfo(dtype).eps) * (4 + terms)


class Library(Device):
    """Another library than that of the other tests: VGPU_CPU_FALLBACKS is read once."""

    def __init__(self, folder):
        own = folder / "libvgpu-stand-ins.so"
        shutil.copy(build(), own)
        os.environ["VGPU_CPU_FALLBACKS"] = "all"
        try:
            super().__init__(str(own))
            self.status("cublasSscal_v2", None, 0, self.scalar(1, "float32"), None, 1)  # reads it
        finally:
            del os.environ["VGPU_CPU_FALLBACKS"]
        self.cuda.vgpu_fallback_calls.restype = ctypes.c_char_p
        self.kept = []

    def stood_in(self):
        return self.cuda.vgpu_fallback_calls().decode().splitlines()

    def status(self, name, *arguments):
        """The call's status; numbers go as C's int, others as they are."""
        return getattr(self.cuda, name)(*[self.given(one) for one in arguments])

    def call(self, name, *arguments):
        status = self.status(name, *arguments)
        assert status == 0, f"{name}: {status}"

    def given(self, one):
        if isinstance(one, np.ndarray):
            return one.ctypes.data_as(ctypes.c_void_p)
        return ctypes.c_int(one) if isinstance(one, int) else one

    def scalar(self, value, dtype):
        """In the host's memory."""
        self.kept = [*getattr(self, "kept", [])[-64:], np.array([value], dtype)]
        return self.kept[-1].ctypes.data_as(ctypes.c_void_p)

    def put(self, values):
        """The array's bytes in memory of the device, which ends with them."""
        at = self.allocate(values.nbytes)
        data = np.ascontiguousarray(values)
        assert self.cuda.cuMemcpyHtoD_v2(at, self.given(data), ctypes.c_size_t(data.nbytes)) == 0
        return at

    def get(self, at, shape, dtype):
        values = np.zeros(shape, dtype)
        assert self.cuda.cuMemcpyDtoH_v2(self.given(values), at, ctypes.c_size_t(values.nbytes)) == 0
        return values

    def pointers(self, addresses):
        return self.put(np.array([one.value for one in addresses], np.uint64))

    def descriptor(self, kind, *settings, nd=True):
        made = ctypes.c_void_p()
        self.call(f"cudnnCreate{kind}Descriptor", ctypes.byref(made))
        self.call(f"cudnnSet{kind}{'Nd' if nd else ''}Descriptor", made, *settings)
        return made

    def tensor(self, shape, dtype, last=False):
        """Of an array in the order samples, channels, space; `last`: channels lie last."""
        order = [0, *range(2, len(shape)), 1] if last else range(len(shape))
        steps, step = [0] * len(shape), 1
        for k in reversed(list(order)):
            steps[k], step = step, step * shape[k]
        return self.descriptor("Tensor", DNN[dtype], len(shape), ints(shape), ints(steps))

    def put_tensor(self, values, last=False):
        return self.put(np.moveaxis(values, 1, -1) if last else values)

    def get_tensor(self, at, shape, dtype, last=False):
        if not last:
            return self.get(at, shape, dtype)
        return np.moveaxis(self.get(at, [shape[0], *shape[2:], shape[1]], dtype), -1, 1)


def ints(values):
    return (ctypes.c_int * len(values))(*values)
