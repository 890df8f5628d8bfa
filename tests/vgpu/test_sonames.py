"""Sonames: the folder of libraries has those that each framework opens, with the version that it expects."""

import ctypes
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from virtual_device import build, builder

VERSION = """import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
value = ctypes.c_int()
cuda.cudaRuntimeGetVersion(ctypes.byref(value))
print(value.value)
print(cuda.cudnnGetVersion() if hasattr(cuda, 'cudnnGetVersion') else 0)
print(hasattr(cuda, 'cuLaunchKernel'), hasattr(cuda, 'cudaMalloc'))
"""


@pytest.fixture(scope="module")
def folder():
    """Return the folder of the built libraries."""
    return Path(build()).parent


@pytest.fixture(scope="module")
def portable():
    """The build for any Linux, which another linker makes."""
    pytest.importorskip("ziglang")
    return builder.build(builder.cache(), portable=True)


@pytest.mark.parametrize("made", ["folder", "portable"])
@pytest.mark.parametrize("name", builder.SHIMS)
def test_every_name_opens_the_same_device(request, made, name):
    folder = request.getfixturevalue(made)
    code = f"import ctypes; a = ctypes.CDLL({str(folder / name)!r}); b = ctypes.CDLL({str(folder / 'libvgpu.so')!r})\n"
    code += "address = lambda library: ctypes.cast(library.cuInit, ctypes.c_void_p).value\n"
    code += "assert address(a) == address(b)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# {library: what PyTorch 2.0, 2.4, 2.8, 2.14 and 2.15 link of it}, of the undefined symbols of their wheels' libraries.
LINKED_BY_PYTORCH = json.loads(Path(__file__).with_name("torch_symbols.json").read_text("utf-8"))


@pytest.mark.parametrize("name", LINKED_BY_PYTORCH)
def test_all_symbols_that_pytorch_links_exist(folder, name):
    library = ctypes.CDLL(str(folder / name))
    assert [one for one in LINKED_BY_PYTORCH[name] if not hasattr(library, one)] == []


ENTRY_POINT = """import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1])
at, status, flags = ctypes.c_void_p(), ctypes.c_int(7), ctypes.c_uint64(0)
print(runtime.cudaGetDriverEntryPoint(b"cuMemCreate", ctypes.byref(at), flags, ctypes.byref(status)))
print(at.value == ctypes.cast(runtime.cuMemCreate, ctypes.c_void_p).value, status.value)
"""


@pytest.mark.parametrize(("name", "status"), [("11.0", 7), ("12", 0)])
def test_the_runtime_finds_entry_points_of_the_driver(folder, name, status):
    """CUDA 11 has no fourth argument: what lies there is not written to."""
    command = [sys.executable, "-c", ENTRY_POINT, str(folder / f"libcudart.so.{name}")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "True", str(status)]


@pytest.mark.parametrize(
    ("name", "function", "version"),
    [
        ("libcudart.so.10.0", "cudaRuntimeGetVersion", 10000),
        ("libcudart.so.10.1", "cudaRuntimeGetVersion", 10010),
        ("libcudart.so.11.0", "cudaRuntimeGetVersion", 11020),
        ("libcudart.so.12", "cudaRuntimeGetVersion", 12050),
    ],
)
def test_the_runtime_of_each_name_has_its_version(folder, name, function, version):
    value = ctypes.c_int()
    getattr(ctypes.CDLL(str(folder / name)), function)(ctypes.byref(value))
    assert value.value == version


@pytest.mark.parametrize(("name", "parts"), [("7", [7, 6, 5]), ("8", [8, 9, 7]), ("9", [9, 99, 0])])
def test_cudnn_of_each_name_has_its_version(folder, name, parts):
    cudnn = ctypes.CDLL(str(folder / f"libcudnn.so.{name}"))
    values = [ctypes.c_int() for _ in parts]
    for part, value in enumerate(values):
        assert cudnn.cudnnGetProperty(part, ctypes.byref(value)) == 0
    assert [value.value for value in values] == parts
    cudnn.cudnnGetVersion.restype = ctypes.c_size_t
    major, minor, patch = parts
    assert cudnn.cudnnGetVersion() == major * (10000 if major > 8 else 1000) + minor * 100 + patch


STATUSES = """import ctypes, sys
cudnn = ctypes.CDLL(sys.argv[1])
print(cudnn.cudnnBackendFinalize(None), cudnn.cudnnCTCLoss())
"""


@pytest.mark.parametrize(("name", "statuses"), [("7", ["3", "9"]), ("8", ["3", "9"]), ("9", ["2000", "3000"])])
def test_cudnn_of_each_name_has_its_statuses(folder, name, statuses):
    """For a null pointer, and for what is not supported.  cuDNN 9 numbers them anew."""
    command = [sys.executable, "-c", STATUSES, str(folder / f"libcudnn.so.{name}")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == statuses


# size: of cudaDeviceProp; threads: the offset of maxThreadsPerMultiProcessor.  360 is that of major, and 640 of
# sharedMemPerMultiprocessor.
@pytest.mark.parametrize(("name", "size", "threads"), [("10.0", 712, 620), ("11.0", 728, 624), ("12", 728, 624)])
def test_properties_fit_their_structure(folder, name, size, threads):
    """What lies behind the structure of the caller's CUDA is not touched.  Without PTX, the capability is 7.0."""
    program = f"""import ctypes, sys
room = ctypes.create_string_buffer(b"\\xaa" * 2048, 2048)
assert ctypes.CDLL({str(folder / f"libcudart.so.{name}")!r}).cudaGetDeviceProperties(room, 0) == 0
sys.stdout.buffer.write(room.raw[:2048])"""
    room = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    assert set(room[size:]) == {0xAA}
    assert struct.unpack_from("<i", room, threads) == (2048,)
    assert struct.unpack_from("<2i", room, 360) == (7, 0)
    assert struct.unpack_from("<Q", room, 640) == (98304,)


@pytest.mark.parametrize("made", ["folder", "portable"])
def test_a_program_with_versioned_symbols_loads(request, made, tmp_path):
    """It asks for symbols of a version: TensorFlow 1.13.1 is linked so."""
    folder = request.getfixturevalue(made)
    name = "libcudart.so.10.0"
    (tmp_path / "versions").write_text(f"{name} {{ global: *; }};")
    (tmp_path / "theirs.c").write_text("int cudaMalloc() { return 0; } int cudaRuntimeGetVersion() { return 0; }")
    program = """int cudaMalloc(void**, long); int cudaRuntimeGetVersion(int*);
        int main(void) { void* p; int v = 0; return cudaMalloc(&p, 64) || cudaRuntimeGetVersion(&v) || v != 10000; }"""
    (tmp_path / "program.c").write_text(program)
    cc = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
    shared = [f"-Wl,-soname,{name}", f"-Wl,--version-script={tmp_path / 'versions'}", "-o", str(tmp_path / name)]
    subprocess.run([*cc, "-shared", "-fPIC", str(tmp_path / "theirs.c"), *shared], check=True)
    linked = [str(tmp_path / "program.c"), str(tmp_path / name), "-o", str(tmp_path / "program")]
    subprocess.run([*cc, *linked], check=True)
    subprocess.run([str(tmp_path / "program")], env={"LD_LIBRARY_PATH": str(folder)}, check=True, timeout=60)


def test_nvml_counts_the_device(folder):
    nvml = ctypes.CDLL(str(folder / "libnvidia-ml.so.1"))
    count, device = ctypes.c_uint(), ctypes.c_void_p()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    assert count.value == 1
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:01:00.0", ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(device)) != 0


READ_BY_PACKAGE = """
import pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlDeviceGetCount(), pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlDeviceGetName(device))
print(pynvml.nvmlDeviceGetCudaComputeCapability(device), pynvml.nvmlDeviceGetMemoryInfo(device).total >> 20)
try:
    pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)
except pynvml.NVMLError as error:
    print(type(error).__name__)
"""


def test_nvidias_own_package_reads_the_device(folder):
    environ = {"LD_LIBRARY_PATH": str(folder), "VGPU_COMPUTE_CAPABILITY": "70"}
    done = subprocess.run([sys.executable, "-c", READ_BY_PACKAGE], env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split()[0] == "1"
    assert done.stdout.splitlines()[1].startswith("(7, 0) ")
    assert done.stdout.splitlines()[2] == "NVMLError_FunctionNotFound"
