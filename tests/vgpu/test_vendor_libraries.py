"""Vendor libraries: handles and settings are accepted, calls that compute are refused by name, and nothing leaks."""

import ctypes
import re
import subprocess
import sys

import pytest
from virtual_device import builder

CREATES = [
    "cublasCreate_v2",
    "cublasLtCreate",
    "cudnnCreate",
    "cudnnCreateTensorDescriptor",
    "cufftCreate",
    "cusolverDnCreate",
    "cusparseCreate",
    "curandCreateGenerator",
    "cusparseCreateMatDescr",
]
SETS = [
    "cublasSetStream_v2",
    "cudnnSetStream",
    "cudnnSetLRNDescriptor",
    "cudnnDestroyPoolingDescriptor",
    "cufftSetStream",
    "cusolverDnSetStream",
    "cusparseSetStream",
    "cufftSetWorkArea",
    "cublasDestroy_v2",
    "cudnnDeriveNormTensorDescriptor",
    "cudnnCnnInferVersionCheck",
    "cusolverDnXsyevjSetTolerance",
    "cublasLtMatmulPreferenceSetAttribute",
]
COMPUTING_CALLS = [
    "cublasSgemm_v2",
    "cublasStrsm_v2",
    "cudnnPoolingBackward",
    "cudnnConvolutionForward",
    "cudnnBatchNormalizationForwardTraining",
    "cudnnTransformTensor",
    "cudnnSetTensor",
    "cublasSetMatrix",
    "cufftExecC2C",
    "curandGenerateUniform",
]
REFUSED = [
    "cusolverDnSpotrf_bufferSize",
    "cusolverDnSgesvd",
    "cusparseSpMM",
    "cublasSgetrfBatched",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "ncclAllReduce",
    "cudnnGetRNNParamsSize",
    "cudnnFindConvolutionForwardAlgorithmEx",
    "cudnnCreatePersistentRNNPlan",
]


@pytest.fixture
def cuda(device):
    """Return the device's library, with no recorded call that is not supported."""
    device.cuda.vgpu_unsupported_calls.restype = ctypes.c_char_p
    device.cuda.vgpu_clear_unsupported_calls()
    yield device.cuda
    device.cuda.vgpu_clear_unsupported_calls()


def refused_calls(cuda):
    """Return the names of the calls that were refused."""
    return cuda.vgpu_unsupported_calls().decode().split("\n")


@pytest.mark.parametrize("name", CREATES)
def test_a_handle_is_created(cuda, name):
    made = ctypes.c_uint64()
    assert getattr(cuda, name)(ctypes.byref(made)) == 0
    assert made.value and refused_calls(cuda) == [""]


@pytest.mark.parametrize("name", SETS)
def test_a_setting_is_accepted(cuda, name):
    assert getattr(cuda, name)(None) == 0
    assert refused_calls(cuda) == [""]


@pytest.mark.parametrize("name", REFUSED)
def test_calls_with_their_own_error_return_a_status(cuda, name):
    assert getattr(cuda, name)(None) != 0
    assert refused_calls(cuda) == [name]


@pytest.mark.parametrize("name", COMPUTING_CALLS)
def test_a_computing_call_raises_in_the_calling_line(cuda, name):
    with pytest.raises(NotImplementedError, match=f"{name} is not on the virtual GPU"):
        getattr(cuda, name)(None)
        raise AssertionError("it went on")
    assert refused_calls(cuda) == [name]


def test_each_refused_call_is_listed_once_until_cleared(cuda):
    for name in ["cusparseSpMM", "cusolverDnSgesvd", "cusparseSpMM"]:
        getattr(cuda, name)(None)
    assert refused_calls(cuda) == ["cusparseSpMM", "cusolverDnSgesvd"]
    cuda.vgpu_clear_unsupported_calls()
    assert refused_calls(cuda) == [""]


def test_the_program_goes_on_after_the_exception(cuda):
    caller = f"import ctypes; c = ctypes.CDLL({cuda._name!r})\n"
    caller += "def both(): c.cudnnPoolingForward(None), c.cublasSgemm_v2(None)\n"
    caller += "try:\n both()\nexcept NotImplementedError as e: print(e)\n"
    caller += "for k in range(1000): pass\nprint('went on')\n"
    done = subprocess.run([sys.executable, "-c", caller], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["cudnnPoolingForward is not on the virtual GPU", "went on"]


def test_a_program_without_python_gets_a_status(cuda, tmp_path):
    source = tmp_path / "main.c"
    source.write_text(
        '#ifdef __cplusplus\nextern "C"\n#endif\n'
        "int cudnnPoolingForward(void*);\nint main(void) { return cudnnPoolingForward(0); }"
    )
    # The program is compiled as C: for C++, zig would first build its C++ library, which takes a minute.
    compiler = ["cc" if part == "c++" else part for part in builder.compiler()]
    command = [*compiler, str(source), "-o", str(tmp_path / "main"), cuda._name]
    subprocess.run(command, check=True, timeout=300)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, timeout=60, env={
        "LD_LIBRARY_PATH": cuda._name.rpartition("/")[0]
    })  # fmt: skip
    assert (done.returncode, "cudnnPoolingForward" in done.stderr) == (9, True)


def test_a_convolution_is_refused_when_it_computes(cuda):
    """Algorithms and sizes are answered: TensorFlow ends its stream where they fail, and their names say less."""
    count, performance, chosen, size = (
        ctypes.c_int(),
        (ctypes.c_int * 12)(*[7] * 12),
        ctypes.c_int(7),
        ctypes.c_size_t(7),
    )
    pointers = [ctypes.c_void_p()] * 5
    assert cuda.cudnnGetConvolutionForwardAlgorithm(*pointers, 0, ctypes.c_size_t(0), ctypes.byref(chosen)) == 0
    assert cuda.cudnnGetConvolutionForwardAlgorithm_v7(*pointers, 1, ctypes.byref(count), performance) == 0
    assert cuda.cudnnGetConvolutionForwardWorkspaceSize(*pointers, 0, ctypes.byref(size)) == 0
    assert (chosen.value, count.value, set(performance), size.value) == (0, 1, {0}, 0)
    assert refused_calls(cuda) == [""]


def test_a_graph_is_refused_at_its_first_operation(cuda):
    """The kinds of descriptors are a tensor, a convolution, its forward operation, and a heuristic for engines."""
    for kind, name in [
        (17, ""),
        (1, ""),
        (10, "cudnnBackendFinalize(CONVOLUTION_FORWARD)"),
        (4, "cudnnBackendFinalize"),
    ]:
        cuda.vgpu_clear_unsupported_calls()
        descriptor = ctypes.c_void_p()
        assert cuda.cudnnBackendCreateDescriptor(kind, ctypes.byref(descriptor)) == 0
        assert bool(cuda.cudnnBackendFinalize(descriptor)) == bool(name)
        assert cuda.cudnnBackendDestroyDescriptor(descriptor) == 0
        assert refused_calls(cuda) == [name]


def test_a_plan_has_a_workspace_of_size_zero(cuda):
    plan, size = ctypes.c_int(), ctypes.c_size_t(7)
    assert cuda.cufftCreate(ctypes.byref(plan)) == 0
    assert cuda.cufftMakePlan1d(plan, 8, 41, 1, ctypes.byref(size)) == 0
    assert size.value == 0


@pytest.mark.parametrize(
    ("name", "arguments"), [("cublasGemmEx", 18), ("cublasGemmBatchedEx", 19), ("cublasGemmStridedBatchedEx", 22)]
)
def test_a_tried_algorithm_returns_a_status(cuda, name, arguments):
    """Auto-tuners go on with the next; the default product would end a stream, and is raised."""
    zeros = [ctypes.c_uint64()] * arguments
    assert getattr(cuda, name)(*zeros, 3) == 15
    for default in (-1, 99):
        with pytest.raises(NotImplementedError, match=f"{name} is not"):
            getattr(cuda, name)(*zeros, default)
            raise AssertionError("it went on")
    assert refused_calls(cuda) == [name]


@pytest.mark.parametrize(
    ("name", "value"),
    [("cudnnGetConvolutionMathType", 0), ("cudnnGetConvolutionGroupCount", 1), ("cudnnGetRNNMatrixMathType", 0)],
)
def test_a_getter_returns_the_default_setting(cuda, name, value):
    """TensorFlow 2.4 ends the process where it is not."""
    got = ctypes.c_int(7)
    assert getattr(cuda, name)(None, ctypes.byref(got)) == 0
    assert (got.value, refused_calls(cuda)) == (value, [""])


TEXTS = [
    *("cublasGetStatusName", "cublasGetStatusString", "cublasLtGetStatusName", "cublasLtGetStatusString"),
    *("cudnnGetErrorString", "cusparseGetErrorName", "cusparseGetErrorString", "ncclGetErrorString"),
]


@pytest.mark.parametrize("name", TEXTS)
def test_a_status_has_a_text(cuda, name):
    """PyTorch asks for it after each call that fails: a number in its place would be read as an address."""
    function = getattr(cuda, name)
    function.restype = ctypes.c_char_p
    assert function(0) and function(1)
    assert function(0) != function(1)


def test_no_list_names_a_function_that_returns_a_string():
    """What the lists name returns an int."""
    lists = [path.read_text() for path in (builder.SOURCES / "vendor_stubs").glob("*.def")]
    assert len(lists) > 5
    assert not re.findall(r"\w+(?:Error|Status)(?:String|Name|Text)\b", " ".join(lists))


@pytest.mark.parametrize("name", ["nvshmem_malloc", "nvshmem_ptr", "nvshmemx_mc_ptr"])
def test_functions_that_return_a_pointer_return_null(cuda, name):
    function = getattr(cuda, name)
    function.restype = ctypes.c_void_p
    assert function(ctypes.c_size_t(8)) is None
    assert refused_calls(cuda) == [name]
