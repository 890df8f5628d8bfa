"""An NVIDIA GPU.  Two more streams of the same CUDA context keep it busy: they fill and copy memory, by the driver's
own API, for a framework may put all its ops into one stream, and work given to it would only queue behind the case.
"""

import ctypes
import subprocess
import threading

from tfdet_common import virtual_gpu
from tfdet_common.machine import device_key, read_system_file, short_hash

from . import nvml
from .base import Busy, Device

_STREAMS = 2
_BYTES = 64 << 20  # of each of a stream's two buffers
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: not ordered with the framework's streams


class Nvidia(Device):
    kind, word, placement = "nvidia", "gpu", "GPU"
    in_company = launches_kernels = True
    absent = ("Start the container with `--gpus all`, check the driver with `tfdet doctor`, or ask for "
              "`--device cpu`.")

    def __init__(self, cuda=None):
        """cuda: the driver's library, where it is not the machine's."""
        self._cuda = cuda
        self._nvml = None

    def enter(self):
        """NVML begins here: the threads that it starts must not pass for the framework's."""
        self._nvml = nvml.connect()

    def installed(self):
        return {"driver": _driver(), "gpu": None, "compute_capability": None, "gpu_uuid_hash": None}

    def describe(self, framework):
        found = framework.visible(self.placement)
        if not found:
            return None, {}
        name = found[0]["name"] or "unknown"
        if name.startswith(virtual_gpu.NAME):  # somebody's LD_LIBRARY_PATH: it never passes for a card
            return None, {}
        uuid = _output(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]).splitlines()
        return {"kind": self.kind, "model": device_key(name)}, {
            "gpu": name, "compute_capability": found[0]["compute_capability"],
            "gpu_uuid_hash": short_hash(uuid[0]) if uuid else None,
        }

    def state(self):
        return None if self._nvml is None else self._nvml.state()

    def work(self):
        """The framework must have started the device: its context is shared."""
        cuda = self._cuda or _library()
        context = ctypes.c_void_p()
        _check(cuda.cuInit(ctypes.c_uint(0)))
        _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ctypes.c_int(0)))
        return "{} CUDA streams filling and copying memory".format(_STREAMS), [
            lambda: _stream(cuda, context) for _ in range(_STREAMS)]


def _library():
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Busy(str(error))


def _stream(cuda, context):
    """In its own thread: a stream with two buffers, and what to do with them once more."""
    stream, one, two = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.c_ulonglong()
    failed = (cuda.cuCtxSetCurrent(context) or cuda.cuStreamCreate(ctypes.byref(stream), ctypes.c_uint(_NON_BLOCKING))
              or cuda.cuMemAlloc_v2(ctypes.byref(one), ctypes.c_size_t(_BYTES))
              or cuda.cuMemAlloc_v2(ctypes.byref(two), ctypes.c_size_t(_BYTES)))
    if failed:
        return lambda: threading.Event().wait(0.05)  # no memory left: the case needs it more

    def step():
        for value in range(8):
            cuda.cuMemsetD32Async(one, ctypes.c_uint(value), ctypes.c_size_t(_BYTES // 4), stream)
            cuda.cuMemcpyDtoDAsync_v2(two, one, ctypes.c_size_t(_BYTES), stream)
        cuda.cuStreamSynchronize(stream)
    return step


def _check(status):
    if status:
        raise Busy("the CUDA driver answers {}".format(status))


def _driver():
    return read_system_file("/proc/driver/nvidia/version", r"\s(\d+\.\d+(\.\d+)?)\s")


def _output(command):
    try:
        output = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return output.decode("utf-8", "replace").strip()
