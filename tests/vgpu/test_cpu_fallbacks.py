"""CPU fallbacks of vendor libraries: off by default, named in every output, and with checked memory accesses."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from virtual_device import build

# Functions that call vendor libraries: a product, whose result fits its memory for 10 rows, and a fill of a tensor.
PROGRAM = """
import sys, ctypes, pathlib
sys.path.insert(0, {folder!r})
import numpy as np
from virtual_device import Device
device = Device({library!r})
cuda = device.cuda
cuda.vgpu_fallback_calls.restype = cuda.vgpu_unsupported_calls.restype = ctypes.c_char_p
a, c = device.allocate(400), device.allocate(400)
one = (ctypes.c_float * 1)(1)
def product(rows, to=c, **_):
    return cuda.cublasSgemm_v2(None, 0, 0, rows, 10, 10, one, a, rows, a, 10, one, to, rows)
def pooling():
    return cuda.cudnnSetTensor(None, None, None, None)
try:
    {body}
except NotImplementedError as error:
    print(error)
print(cuda.vgpu_fallback_calls().decode().split(), cuda.vgpu_unsupported_calls().decode().split())
"""


def run_in_process(body, **environment):
    """Run `body` in PROGRAM; return the exit code and the lines of both outputs."""
    text = PROGRAM.format(folder=str(Path(__file__).parent), library=build(), body=body)
    inherited = {name: value for name, value in os.environ.items() if name != "VGPU_CPU_FALLBACKS"}
    process = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env={**inherited, **environment}
    )
    return process.returncode, process.stdout.splitlines(), process.stderr.splitlines()


def test_cpu_fallbacks_are_off_by_default(tmp_path):
    for environment in ({}, {"VGPU_CPU_FALLBACKS": ""}, {"VGPU_CPU_FALLBACKS": "cudnn"}):
        code, output, errors = run_in_process("product(10)\n    for _ in range(9): pass", **environment)
        assert (code, output) == (0, ["cublasSgemm_v2 is not on the virtual GPU", "[] ['cublasSgemm_v2']"])
        assert errors == ["vgpu: not on the virtual GPU: cublasSgemm_v2"]


@pytest.mark.parametrize("chosen", ["cublas", "all", "cudnn,cublas"])
def test_each_cpu_fallback_is_named_once_and_in_the_report(tmp_path, chosen):
    report = tmp_path / "report"
    code, output, errors = run_in_process(
        "print(product(10), product(10))", VGPU_CPU_FALLBACKS=chosen, VGPU_REPORT=str(report)
    )
    assert (code, output) == (0, ["0 0", "['cublasSgemm_v2'] []"])
    assert errors == ["vgpu: cublasSgemm_v2 is computed by a CPU fallback: its last bits are not NVIDIA's"]
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    assert lines == 2 * [{"before_launch": 0, "cpu_fallback": "cublasSgemm_v2"}]


def test_a_library_without_fallbacks_is_refused_as_setting():
    for chosen in ("cufft", "cublasLt", "cublas,,cudnn", "ALL"):
        code, _, errors = run_in_process("product(10)", VGPU_CPU_FALLBACKS=chosen)
        assert code == 2
        assert "VGPU_CPU_FALLBACKS: no CPU fallbacks for" in errors[-1]


@pytest.mark.parametrize(
    "call", ["product(11)", "product(10, ctypes.c_uint64(c.value + 4))", "product(10, ctypes.c_uint64(8))"]
)
def test_an_out_of_bounds_access_is_a_sticky_error(call):
    """The process goes on, but later calls return the same error."""
    body = f"print({call}, product(10), cuda.cuStreamSynchronize(None))"
    code, output, errors = run_in_process(body, VGPU_CPU_FALLBACKS="all")
    assert (code, output[0]) == (0, "13 13 700")
    assert "an access outside of what was allocated in cublasSgemm_v2" in errors[0]


def test_an_uncomputed_case_is_refused_by_name(library):
    """A fallback exists for the call, but not for bytes in vectors of channels."""
    library.cuda.vgpu_unsupported_calls.restype = ctypes.c_char_p
    tensor = ctypes.c_void_p()
    library.call("cudnnCreateTensorDescriptor", ctypes.byref(tensor))
    library.call("cudnnSetTensor4dDescriptor", tensor, 0, 5, 1, 4, 2, 2)
    address = library.put(np.zeros(16, np.int8))
    with pytest.raises(NotImplementedError, match="cudnnSetTensor is not on the virtual GPU"):
        library.status("cudnnSetTensor", None, tensor, address, address)
        raise AssertionError("it went on")
    assert library.cuda.vgpu_unsupported_calls().decode() == "cudnnSetTensor"
    assert "cudnnSetTensor" not in library.fallback_calls()


def test_fallbacks_give_equal_bytes_under_every_schedule(library):
    """A sum has a fixed order, in which the first addend comes first."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 10_000).astype(np.float32)
    address, results = library.put(x), set()
    for schedule in [b"serial", b"reverse", b"random:1", b"adversary:2"]:
        assert library.cuda.vgpu_set_schedule(schedule) == 0
        total = np.zeros(1, np.float32)
        library.call("cublasSdot_v2", None, x.size, address, 1, address, 1, total)
        results.add(total.tobytes())
    expected = np.float32(0)
    for addend in x:
        expected += addend * addend
    assert results == {expected.tobytes()}
