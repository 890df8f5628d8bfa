"""A GPU's own checks, on fake GPUs: NVML's values, two busy streams, the profiler's kernels."""

import os
import signal
import threading
from types import SimpleNamespace

import pynvml
import pytest

from tfdet_probe import devices, frameworks
from tfdet_probe.core import child, contention, fork_server, record
from tfdet_probe.core.child_job import Limits
from tfdet_probe.devices import nvml
from tfdet_probe.devices.nvidia import Nvidia
from tfdet_probe.frameworks.tensorflow import profile

NOT_SUPPORTED, NOT_FOUND = 3, 6  # nvmlReturn_t
NUMBERS = {
    "nvmlDeviceGetTemperature": 54,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
    "nvmlDeviceGetTotalEccErrors": 0,
}


class FakeNvml:
    """A fake of libnvidia-ml.so.1: calls return a status, and write values to their pointers."""

    def __init__(self, gpus=1, lacks=()):
        self._gpus, self._lacks, self.asked = gpus, lacks, []

    def __getattr__(self, name):
        if name in self._lacks:
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name, *arguments):
        self.asked.append(name)
        if name == "nvmlDeviceGetHandleByIndex_v2":
            return 0 if arguments[0].value < self._gpus else NOT_FOUND
        if name == "nvmlDeviceGetHandleByUUID":
            return 0 if arguments[0].value == b"GPU-1234" else NOT_FOUND
        if name == "nvmlSystemGetDriverVersion":
            arguments[0].value = b"580.95.05"
        if name == "nvmlDeviceGetClockInfo":
            arguments[-1]._obj.value = {1: 1980, 2: 3201}[arguments[1].value]
        if name == "nvmlDeviceGetEccMode":
            arguments[-2]._obj.value, arguments[-1]._obj.value = 1, 0
        if name == "nvmlDeviceGetMigMode":
            return NOT_SUPPORTED
        if name in NUMBERS:
            arguments[-1]._obj.value = NUMBERS[name]
        return 0


# The state that the fake GPU has.
STATE = {
    "driver": "580.95.05",
    "sm_mhz": 1980,
    "memory_mhz": 3201,
    "celsius": 54,
    "performance_state": 0,
    "throttle_reasons": 4,
    "ecc": True,
    "ecc_errors": 0,
    "mig": None,
}


@pytest.fixture
def use_fake_nvml(monkeypatch):
    """Return a function that makes nvidia-ml-py use a FakeNvml."""

    def install(fake):
        monkeypatch.setattr(pynvml, "nvmlLib", fake)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    return install


def test_the_state_of_a_gpu(use_fake_nvml):
    use_fake_nvml(FakeNvml())
    assert nvml.connect().state() == STATE


def test_nvml_is_connected_before_the_framework_is_there(use_fake_nvml, monkeypatch):
    """NVML starts threads; later ones would count as the framework's, and cases could not be forked."""
    use_fake_nvml(FakeNvml())
    card = Nvidia()
    card.initialize()
    monkeypatch.setattr(nvml, "connect", lambda: pytest.fail("too late"))
    assert card.state() == STATE


def test_values_unknown_to_an_older_driver_are_none(use_fake_nvml):
    use_fake_nvml(FakeNvml(lacks=("nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetMigMode")))
    assert nvml.connect().state() == dict(STATE, throttle_reasons=None)


@pytest.mark.parametrize(("visible", "found"), [(None, True), ("0,1", True), ("3", False), ("GPU-1234", True)])
def test_nvml_connects_to_the_gpu_that_cuda_sees_first(use_fake_nvml, visible, found):
    use_fake_nvml(FakeNvml(gpus=2))
    assert (nvml.connect(visible) is not None) is found


def test_without_nvidia_ml_py_there_is_no_state(monkeypatch):
    monkeypatch.setattr(nvml, "pynvml", None)
    assert nvml.connect() is None


class FakeCuda:
    """A fake driver that records calls, and the work queued on each stream."""

    def __init__(self, fails=()):
        self.fails, self.calls, self.queued = fails, [], {}
        self.enough = threading.Event()
        self._lock = threading.Lock()

    def __getattr__(self, name):
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name, *arguments):
        with self._lock:
            self.calls.append(name)
            if name == "cuStreamCreate":
                assert arguments[1].value == 1, "a blocking stream would wait for TensorFlow's"
                arguments[0]._obj.value = len([c for c in self.calls if c == name])
            if name in ("cuMemsetD32Async", "cuMemcpyDtoDAsync_v2"):
                self.queued.setdefault(arguments[-1].value, []).append(name)
                if len(self.queued) == 2 and all(len(operations) >= 4 for operations in self.queued.values()):
                    self.enough.set()
        return 700 if name in self.fails else 0


def test_two_streams_are_busy_until_the_end():
    cuda = FakeCuda()
    threads_before = threading.active_count()
    with contention.keep_busy(Nvidia(cuda)) as description:
        assert description == "2 CUDA streams filling and copying memory"
        assert cuda.enough.wait(60)
    assert threading.active_count() == threads_before
    assert set(cuda.queued) == {1, 2}
    assert cuda.calls[:2] == ["cuInit", "cuDevicePrimaryCtxRetain"], "TensorFlow's own context"


def test_an_error_of_the_driver_leaves_streams_idle():
    with contention.keep_busy(Nvidia(FakeCuda(fails=["cuDevicePrimaryCtxRetain"]))) as description:
        assert description is None
    cuda = FakeCuda(fails=["cuMemAlloc_v2"])
    with contention.keep_busy(Nvidia(cuda)) as description:
        assert description
    assert not cuda.queued


def test_a_cpu_is_kept_busy_by_threads():
    threads_before = threading.active_count()
    with contention.keep_busy(devices.by_cli_name("cpu")) as description:
        assert "threads multiplying matrices" in description
        assert threading.active_count() > threads_before
    assert threading.active_count() == threads_before


def plane(name, *lines):
    """Return a plane of the profiler; lines: (line name, kernel names)."""
    names = sorted({kernel for _, kernels in lines for kernel in kernels})
    metadata = {n: SimpleNamespace(name=kernel) for n, kernel in enumerate(names)}
    plane_lines = [
        SimpleNamespace(name=line, events=[SimpleNamespace(metadata_id=names.index(kernel)) for kernel in kernels])
        for line, kernels in lines
    ]
    return SimpleNamespace(name=name, event_metadata=metadata, lines=plane_lines)


def test_kernels_are_what_ran_on_a_gpus_streams():
    space = SimpleNamespace(
        planes=[
            plane("/host:CPU", ("tf_Compute/1", ["MatMul"])),
            plane(
                "/device:GPU:0",
                ("Stream #14(Compute)", ["void BiasGradNHWC<float>", "void BiasGradNHWC<float>", "MemcpyD2H"]),
                ("Stream #15(MemcpyD2H)", ["MemcpyD2H"]),
                ("TensorFlow Ops", ["BiasAddGrad"]),
            ),
        ]
    )
    assert profile.kernel_names(space) == ["void BiasGradNHWC<float>"]


def test_a_profiler_that_fails_is_no_fault_of_the_case():
    def broken(*_):
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")

    experimental = SimpleNamespace(start=broken, stop=broken)
    assert profile.kernels(SimpleNamespace(profiler=SimpleNamespace(experimental=experimental)), broken) is None
    assert profile.kernels(SimpleNamespace(), broken) is None


def test_measurements_survive_a_profiler_that_kills_the_process(tmp_path):
    job = SimpleNamespace(process_index=0)

    def main():  # "whole": all that counts was measured before the profiler started
        child._write_report({"differed": [], "whole": True}, job, str(tmp_path))
        os.kill(os.getpid(), signal.SIGKILL)

    limits, framework = Limits(60, 4096), frameworks.load_adapter("tensorflow")
    assert fork_server.in_child(main, str(tmp_path), 0, limits, framework) == {"differed": [], "whole": True}


def test_times_under_contention_are_not_recorded():
    report = {"digests": ["aa"], "differed": [], "ulp": 0, "absolute": 0.0, "reference": "aa", "seconds": [9.0, 1.0]}
    busy = dict(report, seconds=[9.0, 5.0], contention="2 streams")
    merged = record.build_record({}, [dict(report, kernels=["k"]), busy, busy], {})
    assert (merged["median_seconds"], merged["contention"], merged["kernels"]) == (1.0, "2 streams", ["k"])
    plain_record = record.build_record({}, [report], {})
    assert "contention" not in plain_record and "kernels" not in plain_record
