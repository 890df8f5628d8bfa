"""The state of the GPU that the suite runs on, read by NVIDIA's package nvidia-ml-py.

NVML starts no CUDA, so the parent of the forks may ask it.
"""

import os

try:
    import pynvml
except ImportError:  # an image that was built without it
    pynvml = None


class Nvml(object):
    """One GPU.  A question that its driver or its board does not answer is None, never an error."""

    def __init__(self, handle):
        """handle: an nvmlDevice_t."""
        self._handle = handle

    def state(self):
        """{driver, sm_mhz, memory_mhz, celsius, performance_state, throttle_reasons, ecc, ecc_errors, mig}."""
        ecc = self._ask("nvmlDeviceGetEccMode")
        mig = self._ask("nvmlDeviceGetMigMode")
        return {
            "driver": _ask("nvmlSystemGetDriverVersion"),
            "sm_mhz": self._ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM),
            "memory_mhz": self._ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_MEM),
            "celsius": self._ask("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU),
            "performance_state": self._ask("nvmlDeviceGetPerformanceState"),
            "throttle_reasons": self._ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
            "ecc": None if ecc is None else bool(ecc[0]),  # now; the other is after the next boot
            "ecc_errors": self._ask("nvmlDeviceGetTotalEccErrors", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                    pynvml.NVML_VOLATILE_ECC),
            "mig": None if mig is None else bool(mig[0]),
        }

    def _ask(self, name, *arguments):
        return _ask(name, self._handle, *arguments)


def connect(visible=None):
    """The Nvml of the GPU that CUDA sees first; None without a driver, a GPU, or nvidia-ml-py.

    visible: CUDA_VISIBLE_DEVICES; None: the variable of this process.
    """
    if pynvml is None:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    first = (visible or "0").split(",")[0].strip()
    try:
        pynvml.nvmlInit()
        if first.isdigit():
            return Nvml(pynvml.nvmlDeviceGetHandleByIndex(int(first)))
        return Nvml(pynvml.nvmlDeviceGetHandleByUUID(first))  # GPU-<uuid>, MIG-<uuid>
    except pynvml.NVMLError:
        return None


def _ask(name, *arguments):
    try:
        return getattr(pynvml, name)(*arguments)
    except pynvml.NVMLError:
        return None
