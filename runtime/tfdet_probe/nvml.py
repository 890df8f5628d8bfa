"""The state of the GPU as NVIDIA's management library tells it: clocks, temperature, ECC, MIG, driver.

By ctypes, for environments have no package for it.  NVML starts no CUDA, so the parent of the forks may ask it.
"""

import ctypes
import os

_SUCCESS = 0
_SM_CLOCK, _MEMORY_CLOCK = 1, 2  # nvmlClockType_t
_TEMPERATURE_GPU = 0
_UNCORRECTED, _VOLATILE = 1, 0  # nvmlMemoryErrorType_t, nvmlEccCounterType_t


class Nvml(object):
    """The GPU that the suite runs on: the first that CUDA sees.  None of the answers is ever an error."""

    def __init__(self, library, visible=None):
        """library: libnvidia-ml.so.1.  visible: CUDA_VISIBLE_DEVICES, or None."""
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
        """{driver, sm_mhz, memory_mhz, celsius, performance_state, throttle_reasons, ecc, ecc_errors, mig}; None where
        the GPU does not tell."""
        return {
            "driver": self._driver(),
            "sm_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(_SM_CLOCK)),
            "memory_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_uint(_MEMORY_CLOCK)),
            "celsius": self._number("nvmlDeviceGetTemperature", ctypes.c_uint(_TEMPERATURE_GPU)),
            "performance_state": self._number("nvmlDeviceGetPerformanceState"),
            "throttle_reasons": self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong),
            "ecc": self._switch("nvmlDeviceGetEccMode"),
            "ecc_errors": self._number("nvmlDeviceGetTotalEccErrors", ctypes.c_uint(_UNCORRECTED),
                                       ctypes.c_uint(_VOLATILE), kind=ctypes.c_ulonglong),
            "mig": self._switch("nvmlDeviceGetMigMode"),
        }

    def _driver(self):
        text = ctypes.create_string_buffer(96)
        if self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text))) != _SUCCESS:
            return None
        return text.value.decode("ascii", "replace")

    def _number(self, name, *arguments, **how):
        value = how.get("kind", ctypes.c_uint)()
        if self._call(name, self._handle, *(arguments + (ctypes.byref(value),))) != _SUCCESS:
            return None
        return value.value

    def _switch(self, name):
        """A mode that is on or off now (and may be set otherwise for the next boot)."""
        now, later = ctypes.c_uint(), ctypes.c_uint()
        if self._call(name, self._handle, ctypes.byref(now), ctypes.byref(later)) != _SUCCESS:
            return None
        return bool(now.value)

    def _call(self, name, *arguments):
        try:
            return getattr(self._library, name)(*arguments)
        except AttributeError:  # a driver older than the question
            return None


def connect():
    """The GPU's Nvml, or None where there is no driver or no GPU."""
    try:
        gpu = Nvml(ctypes.CDLL("libnvidia-ml.so.1"), os.environ.get("CUDA_VISIBLE_DEVICES"))
    except (OSError, AttributeError):
        return None
    return gpu if gpu.found else None
