"""An NVIDIA GPU.  Under contention, two more streams of the same CUDA context fill and copy memory.

They use the driver API: a framework may put all its ops into one stream, where load would only queue behind the case.
"""

import ctypes
import subprocess
import threading

from tfdet_common import virtual_gpu
from tfdet_common.machine import device_key, read_system_file, short_hash

from . import nvml
from .base import ContentionError, Device

_STREAMS = 2
_BUFFER_BYTES = 64 << 20  # each stream has two buffers
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: not ordered with the framework's streams


class Nvidia(Device):
    """An NVIDIA GPU; devices.base.Device says what each method does."""

    kind, cli_name, placement = "nvidia", "gpu", "GPU"
    contention_by_default = launches_kernels = True
    unavailable_advice = ("Start the container with `--gpus all`, check the driver with `tfdet doctor`, or ask for "
              "`--device cpu`.")

    def __init__(self, cuda=None):
        """cuda: the driver's library; None: libcuda.so.1 of this machine."""
        self._cuda = cuda
        self._nvml = None

    def initialize(self):
        """Start NVML first: otherwise its threads would look as if the framework's runtime had started."""
        self._nvml = nvml.connect()

    def describe_installation(self):
        return {"driver": _driver(), "gpu": None, "compute_capability": None, "gpu_uuid_hash": None}

    def describe(self, framework):
        visible = framework.visible(self.placement)
        if not visible:
            return None, {}
        name = visible[0]["name"] or "unknown"
        if name.startswith(virtual_gpu.NAME):  # by LD_LIBRARY_PATH: it must not pass for a real GPU
            return None, {}
        uuid = _output(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]).splitlines()
        return {"kind": self.kind, "model": device_key(name)}, {
            "gpu": name, "compute_capability": visible[0]["compute_capability"],
            "gpu_uuid_hash": short_hash(uuid[0]) if uuid else None,
        }

    def state(self):
        return None if self._nvml is None else self._nvml.state()

    def contention_work(self):
        """Uses the framework's CUDA context, so the framework must have started the device."""
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
        raise ContentionError(str(error))


def _stream(cuda, context):
    """Create a stream with two buffers in the calling thread; returns a step that fills and copies them."""
    stream, source, target = ctypes.c_void_p(), ctypes.c_ulonglong(), ctypes.c_ulonglong()
    failed = (cuda.cuCtxSetCurrent(context) or cuda.cuStreamCreate(ctypes.byref(stream), ctypes.c_uint(_NON_BLOCKING))
              or cuda.cuMemAlloc_v2(ctypes.byref(source), ctypes.c_size_t(_BUFFER_BYTES))
              or cuda.cuMemAlloc_v2(ctypes.byref(target), ctypes.c_size_t(_BUFFER_BYTES)))
    if failed:
        return lambda: threading.Event().wait(0.05)  # no memory left: leave it to the case

    def step():
        for value in range(8):
            cuda.cuMemsetD32Async(source, ctypes.c_uint(value), ctypes.c_size_t(_BUFFER_BYTES // 4), stream)
            cuda.cuMemcpyDtoDAsync_v2(target, source, ctypes.c_size_t(_BUFFER_BYTES), stream)
        cuda.cuStreamSynchronize(stream)
    return step


def _check(status):
    if status:
        raise ContentionError("the CUDA driver returned status {}".format(status))


def _driver():
    return read_system_file("/proc/driver/nvidia/version", r"\s(\d+\.\d+(\.\d+)?)\s")


def _output(command):
    try:
        output = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return output.decode("utf-8", "replace").strip()
