"""PyTorch's own samples and lists, from the wheel to a cell; TensorFlow's cells do not change.

The samples are the inputs of ops that PyTorch ships; the lists are those that the documentation has of ops that are
deterministic or raise under UDA, the solution `torch.use_deterministic_algorithms(True)`; none is the control.
The mark `tensorflow` means that a test runs a real framework.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import weekly
from test_status import run_tfdet

from tfdet.base.paths import Project
from tfdet.matrix import ops
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_cases
from tfdet.store.records import Record, read_records

KEY = "torch2.13"


def output_of(python: Path, project: Project, code: str, *arguments: str) -> str:
    """Run the code in that Python, with the runtime and PyTorch's suite on its path; return what it prints."""
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{project.runtime}:{project.suite('torch')}",
        "OMP_NUM_THREADS": "2",
    }
    done = subprocess.run([python, "-c", code, *arguments], env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def run_cells(project: Project, out: Path, *arguments: str) -> dict[tuple[str, str, str], Record]:
    """Run `tfdet run` in the environment on the CPU; return {(source, case, solution): record}."""
    done = run_tfdet(project, "run", KEY, "--device", "cpu", "--repeats", "2", "--out", str(out), *arguments)
    assert done.returncode == 0, done.stderr
    return {(record.source, record.case, record.solution): record for record in read_records(out)}


@pytest.mark.tensorflow
def test_an_op_of_pytorchs_samples_is_a_source(torch_python: Path, checkout: Project, tmp_path: Path) -> None:
    ops_of = ("torch-put", "torch-eq", "torch-jiterator-unary")
    chosen = [word for op in ops_of for word in ("--source", op)] + ["--solution", "UDA"]
    chosen += ["--case", "samples-?*ward-eager", "--case", "large-*-eager"]
    records = run_cells(checkout, tmp_path / "records.jsonl", *chosen)
    forward, backward = "samples-forward-eager", "samples-backward-eager"
    observed = {key: record.observation for key, record in records.items() if key[1] in (forward, backward)}
    assert observed == {
        ("torch-put", forward, "none"): "equal",
        ("torch-put", forward, "UDA"): "raises",
        ("torch-put", backward, "none"): "equal",
        ("torch-put", backward, "UDA"): "raises",
        ("torch-eq", forward, "none"): "equal",
        ("torch-eq", forward, "UDA"): "equal",
        ("torch-eq", backward, "none"): "unsupported",
        ("torch-eq", backward, "UDA"): "unsupported",
    } | {
        ("torch-jiterator-unary", direction, key): "unsupported"
        for direction in (forward, backward)
        for key in ("none", "UDA")
    }
    assert records.keys() - observed.keys() == {("torch-put", "large-put-eager", key) for key in ("none", "UDA")}
    record = records["torch-put", forward, "none"]
    assert (record.framework.name, record.framework.version, tuple(record.ran_on)) == ("torch", "2.13.0", ("CPU:0",))
    error = records["torch-eq", backward, "none"].error
    assert error is not None and error.message == "it has no gradient for torch.float32"


# Programs that run in the environment, each with what it prints asserted in the test that follows.
HIDDEN = """
import os
names = ("CUDA_VISIBLE_DEVICES", "NUMBA_DISABLE_CUDA", "PYTORCH_NVML_BASED_CUDA_CHECK")
os.environ["CUDA_VISIBLE_DEVICES"] = "3"
from tfdet_probe import frameworks
framework = frameworks.load_adapter("torch")
framework.before_import()
import test_opinfo
assert not framework.started()
hidden = [os.environ.get(name) for name in names]
framework.visible("GPU")
print(hidden, [os.environ.get(name) for name in names])
"""


@pytest.mark.tensorflow
@weekly.on_day(0, days=2)
def test_gpus_are_hidden_until_the_fork(torch_python: Path, checkout: Project) -> None:
    """PyTorch's test code queries GPUs on import; a child could not use a GPU that was initialized before the fork."""
    assert output_of(torch_python, checkout, HIDDEN) == "['', '1', '1'] ['3', None, None]"


@pytest.mark.tensorflow
@weekly.on_day(1, days=2)
def test_a_sum_shared_by_threads_is_deterministic_with_the_solution(
    torch_python: Path, checkout: Project, tmp_path: Path
) -> None:
    records = run_cells(checkout, tmp_path / "records.jsonl", "--source", "torch-dunder-getitem", "--solution", "UDA",
                  "--case", "large-*-eager")  # fmt: skip
    assert records["torch-dunder-getitem", "large-getitem-backward-eager", "UDA"].observation == "equal"
    assert records["torch-dunder-getitem", "large-getitem-backward-eager", "none"].observation in ("equal", "differs")


COLLECT = """
import json, sys, test_opinfo, torch
from tfdet_probe.frameworks.torch import documented_ops
print(json.dumps([sorted(test_opinfo.OPS), documented_ops.documented(torch.use_deterministic_algorithms.__doc__),
                  documented_ops.documented(sys.argv[1])]))
"""

# In 2.0 a third list follows: what raises where cuBLAS's variable is not set.
OLD = """
    The following normally-nondeterministic operations will act deterministically when ``mode=True``:

        * :func:`torch.bmm` when called on sparse-dense CUDA tensors

    The following normally-nondeterministic operations will throw a :class:`RuntimeError` when ``mode=True``:

        * :func:`torch.kthvalue` with called on a CUDA tensor
        * :func:`torch.nn.MaxPool2d`, :func:`torch.nn.MaxPool3d`, and :func:`torch.nn.AvgPool3d`
          when attempting to differentiate an MPS tensor
        * :func:`torch.Tensor.scatter_reduce` when called on CUDA or MPS tensor

    A handful of CUDA operations are nondeterministic if the CUDA version is 10.2 or greater, unless the environment
    variable ``CUBLAS_WORKSPACE_CONFIG=:4096:8`` is set: a :class:`RuntimeError` will be raised from these operations

        * :func:`torch.mm`
"""


@pytest.mark.tensorflow
def test_stored_names_and_lists_equal_those_of_the_wheel(torch_python: Path, checkout: Project) -> None:
    keys, documented, old = json.loads(output_of(torch_python, checkout, COLLECT, OLD))
    known = ops.load_ops(checkout.matrix, "torch")[KEY]
    assert [op.key for op in known.ops] == keys
    assert [entry.model_dump() for entry in known.documented] == documented
    assert (len(keys), len(documented)) == (702, 48)
    assert [(entry["api"], entry["says"]) for entry in old] == [
        ("torch.bmm", "deterministic"),
        ("torch.kthvalue", "raises"),
        ("torch.Tensor.scatter_reduce", "raises"),
    ]


def test_host_and_environment_give_cases_equal_names(checkout: Project) -> None:
    """The host reads the names from data and never imports a framework."""
    cases = current_cases(checkout).by_hash
    case_names = {case for (source, _), keys in cases.items() if source == "torch-t" for case in keys or ()}
    dtypes = ("float64", "bfloat16", "float16", "complex64", "int64")
    small = {(case, mode) for case, mode in case_names if not case.startswith("large-")}
    assert small == {
        ("samples-forward-eager", "eager"), ("samples-backward-eager", "eager"),
        ("largest-sample-compiled", "compiled"),
        *((f"samples-in-{dtype}-eager", "eager") for dtype in dtypes),
    }  # fmt: skip
    sources = load_matrix(checkout.matrix).for_framework("torch").sources
    documented = {"torch-cudnn-rnn"}  # a vendor library's, of which the documents alone speak
    assert {source for source, _ in cases if source.startswith("torch-")} == set(sources) - documented


OTHERS = """
import os, collections, torch
from tfdet_probe import case
Sample = collections.namedtuple("Sample", "input args kwargs")

@case("torch-abs", ops=["abs"], modes=["eager"])
def drifting(make):
    return make.samples(lambda device: [Sample(torch.tensor([float(os.getpid())]), (), {})],
                        lambda samples: [torch.abs(sample.input) for sample in samples])

@case("torch-abs", ops=["abs_?"], modes=["eager"])
def changing(make):
    return make.samples(lambda device: [Sample(torch.tensor([-1.0]), (), {})],
                        lambda samples: [sample.input.abs_().sub_(3.0) for sample in samples])

@case("torch-abs", ops=[".*"], modes=["eager"])
def changing_untold(make):
    def normal(mean):
        return torch.native_batch_norm(torch.ones(2, 1), None, None, mean, torch.ones(1), True, 0.1, 1e-5)[0] + mean

    return make.samples(lambda device: [Sample(torch.tensor([5.0]), (), {})],
                        lambda samples: [normal(sample.input) for sample in samples])
"""


@pytest.mark.tensorflow
@weekly.on_day(1, days=2)
def test_changed_inputs_are_generated_again(torch_python: Path, whole_copy: Project, tmp_path: Path) -> None:
    """Inputs of another process, or changed by the run before, are generated again."""
    shutil.rmtree(whole_copy.suite("torch"), ignore_errors=True)
    whole_copy.suite("torch").mkdir()
    (whole_copy.suite("torch") / "test_others.py").write_text(OTHERS, "utf-8")
    out = tmp_path / "records.jsonl"
    selection = ("--repeats", "3", "--source", "torch-abs", "--solution", "none")
    done = run_tfdet(whole_copy, "run", KEY, "--device", "cpu", *selection, "--out", str(out))
    assert done.returncode == 3
    by_case = {record.case: record for record in read_records(out)}
    assert {by_case[case].observation for case in ("changing-eager", "changing-untold-eager")} == {"equal"}
    error = by_case["drifting-eager"].error
    assert by_case["drifting-eager"].observation == "crashed"
    assert error is not None and error.message.startswith("its inputs are not those of the first process")


ZEROS = """
import torch
from tfdet_probe.frameworks.torch import pytree
print(pytree.arrays([torch._efficientzerotensor((2,))])[0].tolist())
"""


@weekly.on_day(5)
@pytest.mark.tensorflow
def test_an_op_runs_in_other_dtypes_and_compiled(torch_python: Path, checkout: Project, tmp_path: Path) -> None:
    """Only supported dtypes run; an op that torch.compile cannot compile whole is unsupported, with the reason."""
    ops_of = ("torch-bitwise-not", "torch-index-put", "torch-jiterator-unary")
    chosen = [word for op in ops_of for word in ("--source", op)] + ["--solution", "none"]
    records = run_cells(checkout, tmp_path / "records.jsonl", *chosen, "--case", "samples-in-*", "--case", "largest-*")
    observed = {(source, case): record.observation for (source, case, _), record in records.items()}
    dtypes = {case: observation for (source, case), observation in observed.items() if source == "torch-index-put"}
    supported = next(op.dtypes for op in ops.load_ops(checkout.matrix, "torch")[KEY].ops if op.key == "index-put")
    assert set(supported) == {"float64", "bfloat16", "float16", "complex64", "int64"}
    cases = ["largest-sample-compiled", *(f"samples-in-{dtype}-eager" for dtype in supported)]
    assert dtypes == dict.fromkeys(cases, "equal")
    assert not [case for source, case in observed if source == "torch-bitwise-not" and "float" in case]
    uncompiled = records["torch-jiterator-unary", "largest-sample-compiled", "none"]
    assert uncompiled.observation == "unsupported"
    assert uncompiled.error is not None and uncompiled.error.message.startswith("torch.compile cannot take it: ")
    largest = records["torch-index-put", "largest-sample-compiled", "none"]
    assert (largest.mode, largest.runs, largest.ran_on) == ("compiled", 4, ["CPU:0"])


COMPILER = """
import os, sys, torch
from tfdet_probe.frameworks.torch import compiled, errors
os.environ["PATH"] = sys.argv[1]
try:
    compiled.start(torch.device(sys.argv[2]))
except Exception as error:
    print(type(error).__name__, error)
else:
    print("it starts")
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("path", "device", "message"),
    [
        ("/usr/bin:/bin", "cpu", "it starts"),
        ("/nowhere", "cpu", "UnsupportedError torch.compile needs a C++ compiler, and there is none"),
        ("/usr/bin:/bin", "cuda", "UnsupportedError torch.compile needs Triton, and there is none"),
    ],
)
def test_without_a_compiler_the_reason_is_reported(
    torch_python: Path, checkout: Project, path: str, device: str, message: str
) -> None:
    if message == "it starts" and not shutil.which("g++", path=path):
        pytest.skip("no C++ compiler here")
    assert output_of(torch_python, checkout, COMPILER, path, device) == message


ANEW = """
import os, torch
from tfdet_probe.frameworks.torch import compiled
folder = compiled.load()
assert torch._inductor.config.compile_threads == 1, "in some versions an import starts the others, before the fork"
seen = []
for _ in range(2):
    read, write = os.pipe()
    if not os.fork():
        told = compiled.start(torch.device("cpu"))
        torch.compile(lambda x: (x * 2).sum(), fullgraph=True)(torch.ones(40, 40))
        os.write(write, repr(sorted(set(told))).encode())
        os._exit(0)
    os.wait()
    seen.append(os.read(read, 1000).decode())
print(seen)
"""


@weekly.on_day(5)
@pytest.mark.tensorflow
def test_each_process_compiles_anew(torch_python: Path, checkout: Project) -> None:
    """A process must not reuse the decisions of an earlier one."""
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler here")
    assert output_of(torch_python, checkout, ANEW) == str(["[('mul', 'CPU:0'), ('sum', 'CPU:0')]"] * 2)


@pytest.mark.tensorflow
def test_zero_tensors_without_storage_have_bytes(torch_python: Path, checkout: Project) -> None:
    """The gradient of sgn is such a zero tensor."""
    assert output_of(torch_python, checkout, ZEROS) == "[0.0, 0.0]"


STARTED = """
import tfdet_probe.frameworks as frameworks
adapter = frameworks.load_adapter("torch")
adapter.before_import()
import test_opinfo
before = adapter.started()
import torch
torch.rand(2000, 2000).sum()
print(before, adapter.started())
"""


@pytest.mark.tensorflow
def test_no_thread_pool_starts_before_the_fork(torch_python: Path, checkout: Project) -> None:
    assert output_of(torch_python, checkout, STARTED).split() == ["False", "True"]


def test_an_unexplained_entry_of_a_list_is_reported(whole_copy: Project) -> None:
    path = whole_copy.matrix / "ops" / "torch" / "names.toml"
    path.write_text(path.read_text("utf-8").replace('api = "torch.cumsum"', 'api = "torch.cumsun"'), "utf-8")
    done = run_tfdet(whole_copy, "show", KEY, "torch-cumsum")
    assert done.returncode == 2
    assert f"{KEY}'s documentation speaks of torch.cumsum" in done.stderr


def test_an_op_that_raises_on_some_samples_is_claimed_to_raise(checkout: Project) -> None:
    source = load_matrix(checkout.matrix).source("torch-put")
    versions = [load_matrix(checkout.matrix).environment(key).version for key in ops.load_ops(checkout.matrix, "torch")]
    assert {(claim.device, claim.outcome, claim.stock) for claim in source.claims} == {
        (device, "raises", f"=={version}") for device in ("cpu", "gpu") for version in versions
    }


def test_an_op_that_raises_for_some_arguments_is_claimed_deterministic_in_part(checkout: Project) -> None:
    """MaxPool3d: documented as deterministic since 2.13, but its code raises unless indices are returned."""
    source = load_matrix(checkout.matrix).source("torch-nn-functional-max-pool3d")
    claims = {claim.stock: (claim.outcome, claim.partly) for claim in source.claims if claim.device == "gpu"}
    newest = {"==2.13", "==2.14", "==2.15"}
    assert {claims[version] for version in newest} == {("deterministic", True)}
    assert {claims[version] for version in claims.keys() - newest} == {("raises", True)}
    never_raises = load_matrix(checkout.matrix).source("torch-index-copy")
    assert {(claim.outcome, claim.partly) for claim in never_raises.claims} == {("deterministic", False)}


def test_pytorch_is_not_installed_on_the_host() -> None:
    """The host parses the suite's text and never imports a framework."""
    code = (
        "import sys, tfdet.store.cases, tfdet_probe.frameworks as f; [f.load_adapter(name) for name in f.names()]; "
        "print([m for m in sys.modules if m in ('tensorflow', 'torch', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
