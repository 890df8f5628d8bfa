"""GPU properties and state from NVML, NVIDIA's management library.

Called through ctypes, because environments have no package for it.  NVML does not start CUDA, so the process that forks
the cases may call it.  Source: NVML API Reference Guide.
"""

import collections
import ctypes
import os

Gpu = collections.namedtuple("Gpu", "name capability mebibytes")  # capability: (major, minor)
Nvidia = collections.namedtuple("Nvidia", "driver gpus")

_SUCCESS = 0
_SM_CLOCK, _MEMORY_CLOCK = 1, 2  # nvmlClockType_t
_TEMPERATURE_GPU = 0
_UNCORRECTED, _VOLATILE = 1, 0  # nvmlMemoryErrorType_t, nvmlEccCounterType_t


class Nvml(object):
    """The GPU that the suite runs on: the first one that CUDA sees.  No query raises: what fails is None."""

    def __init__(self, library, visible=None):
        """Find the GPU.

        Args:
            library: libnvidia-ml.so.1, loaded.
            visible: the value of CUDA_VISIBLE_DEVICES, or None.
        """
        self._library = library
        self._handle = ctypes.c_void_p()
        library.nvmlInit_v2()
        first = (visible or "0").split(",")[0].strip()
        if first.isdigit():
            found = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(first)), ctypes.byref(self._handle))
        else:  # GPU-<uuid>, MIG-<uuid>
            found = library.nvmlDeviceGetHandleByUUID(ctypes.c_char_p(first.encode("ascii")),
                                                      ctypes.byref(self._handle))
        self.found = found == _SUCCESS

    def state(self):
        """The GPU's state now, for the field `gpu_state` of a record.

        Returns:
            A dict: driver (version), sm_mhz and memory_mhz (clocks), celsius, performance_state (0 is the fastest),
            throttle_reasons (NVML's bit mask), ecc and mig (bool: is the mode on), ecc_errors (uncorrected, since
            the driver was loaded).  A value is None if the GPU does not report it.
        """
        return {
            "driver": self._driver(),
            "sm_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(_SM_CLOCK)),
            "memory_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(_MEMORY_CLOCK)),
            "celsius": self._number("nvmlDeviceGetTemperature", ctypes.c_uint(_TEMPERATURE_GPU)),
            "performance_state": self._number("nvmlDeviceGetPerformanceState"),
            "throttle_reasons": self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong),
            "ecc": self._mode("nvmlDeviceGetEccMode"),
            "ecc_errors": self._number("nvmlDeviceGetTotalEccErrors", ctypes.c_uint(_UNCORRECTED),
                                       ctypes.c_uint(_VOLATILE), kind=ctypes.c_ulonglong),
            "mig": self._mode("nvmlDeviceGetMigMode"),
        }

    def _driver(self):
        try:
            return _text(self._library.nvmlSystemGetDriverVersion)
        except NvmlError:
            return None

    def _number(self, name, *arguments, **how):
        value = how.get("kind", ctypes.c_uint)()
        if self._call(name, self._handle, *(arguments + (ctypes.byref(value),))) != _SUCCESS:
            return None
        return value.value

    def _mode(self, name):
        """Whether a mode is on now; its setting for the next boot is not reported."""
        now, later = ctypes.c_uint(), ctypes.c_uint()
        if self._call(name, self._handle, ctypes.byref(now), ctypes.byref(later)) != _SUCCESS:
            return None
        return bool(now.value)

    def _call(self, name, *arguments):
        try:
            return getattr(self._library, name)(*arguments)
        except AttributeError:  # the driver is older than this function
            return None


class NvmlError(Exception):
    """An NVML call returned an error status."""


def connect():
    """The Nvml of the first GPU that CUDA sees, or None without a driver or GPU."""
    try:
        gpu = Nvml(ctypes.CDLL("libnvidia-ml.so.1"), os.environ.get("CUDA_VISIBLE_DEVICES"))
    except (OSError, AttributeError):
        return None
    return gpu if gpu.found else None


def query_gpus(library=None):
    """Query the driver and all GPUs of this machine.

    Args:
        library: libnvidia-ml.so.1, loaded; None loads it.

    Returns:
        An Nvidia: driver version, and a Gpu each: name, compute capability as (major, minor), memory in MiB.  None
        without a working driver.
    """
    try:
        library = library or ctypes.CDLL("libnvidia-ml.so.1")
        _check(library.nvmlInit_v2())
    except (OSError, AttributeError, NvmlError):
        return None
    try:
        count = ctypes.c_uint()
        _check(library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        driver = _text(library.nvmlSystemGetDriverVersion)
        return Nvidia(driver, tuple(_gpu(library, number) for number in range(count.value)))
    except (AttributeError, NvmlError):  # the driver is older than this function
        return None
    finally:
        library.nvmlShutdown()


def _gpu(library, number):
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    memory = (ctypes.c_ulonglong * 3)()  # total, free, used: bytes
    _check(library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(number), ctypes.byref(handle)))
    _check(library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)))
    _check(library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)))
    return Gpu(_text(library.nvmlDeviceGetName, handle), (major.value, minor.value), memory[0] >> 20)


def _text(function, *arguments):
    text = ctypes.create_string_buffer(128)
    _check(function(*(arguments + (text, ctypes.c_uint(len(text))))))
    return text.value.decode("ascii", "replace")


def _check(status):
    if status != _SUCCESS:
        raise NvmlError(status)
