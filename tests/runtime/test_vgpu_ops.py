"""The suite on the virtual GPU, in a real old TensorFlow and in PyTorch.

Solutions: ED is `tfdeterminism.enable_determinism()`, UDA is `torch.use_deterministic_algorithms(True)`, none is the
control.  A schedule such as adversary:3 is the order in which the virtual GPU runs threads.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import weekly

from tfdet.base.paths import find_project
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix
from tfdet_probe.frameworks.tensorflow import allocators
from tfdet_probe.frameworks.torch import Adapter

PROGRAM = """import numpy, tensorflow
values = numpy.random.RandomState(0).standard_normal((60, 40)).astype(numpy.float32)
with tensorflow.device("/GPU:0"):
    print(tensorflow.math.unsorted_segment_sum(values, [0, 1] * 30, 2).numpy().tobytes())
"""
SEGMENT_SUM = ["--source", "unsorted-segment-sum", "--solution", "ED"]


def run_suite(out: Path, *arguments: str, key: str = "tf2.0") -> list[dict[str, Any]]:
    """Run `tfdet run` on the virtual GPU; return the records."""
    command = [sys.executable, "-m", "tfdet", "run", key, "--device", "vgpu", "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def program_command(key: str, folder: Path, text: str) -> list[str]:
    """Return the command that runs a program in a GPU environment without NVIDIA's libraries."""
    project, program = find_project(), folder / "program.py"
    environment = load_matrix(project.matrix).environments[key]
    python = VenvEngine(project).interpreter(key, environment, "gpu", without_vendor_libraries=True)
    program.write_text(text)
    return [str(python), str(program)]


@weekly.on_day(3)
def test_an_op_differs_without_its_solution_and_not_with_it(tmp_path: Path) -> None:
    """Kernels of TensorFlow 2.0; a second run gives the same two results."""
    counts = ["--repeats", "5", "--processes", "1"]
    first = run_suite(tmp_path / "first.jsonl", *SEGMENT_SUM, *counts)
    assert {record["device"]["model"] for record in first} == {"vgpu-sm70"}
    assert {device for record in first for device in record["ran_on"]} == {"GPU:0"}
    observations = {(record["solution"], record["observation"]) for record in first}
    assert observations == {("none", "differs"), ("ED", "equal")}
    assert {tuple(record["device"]["details"]["code"]) for record in first} == {("ptx",)}
    schedule_lists = [record["device"]["details"]["schedules"] for record in first if record["solution"] == "none"]
    assert all(
        set(schedules) <= {"reverse", "random:2", "adversary:3", "random:4", "adversary:5"}
        for schedules in schedule_lists
    )
    repeated = run_suite(tmp_path / "again.jsonl", *SEGMENT_SUM, *counts)
    assert [record["digests"] for record in repeated] == [record["digests"] for record in first]


def test_pytorch_runs_its_machine_code_and_a_record_says_so(tmp_path: Path) -> None:
    chosen = ["--source", "torch-index-add", "--case", "large-index-add-eager", "--repeats", "2", "--processes", "1"]
    records = run_suite(tmp_path / "records.jsonl", *chosen, "--solution", "none", "--solution", "UDA", key="torch2.14")
    observations = {(record["solution"], record["observation"]) for record in records}
    assert observations == {("none", "differs"), ("UDA", "equal")}
    assert {tuple(record["device"]["details"]["code"]) for record in records} == {("sass",)}


def test_kernels_compiled_by_pytorch_at_run_time_are_run(tmp_path: Path) -> None:
    chosen = ["--source", "torch-prod", "--source", "torch-erfinv", "--case", "samples-forward-eager"]
    short = ["--solution", "none", "--repeats", "2", "--processes", "1"]
    records = run_suite(tmp_path / "records.jsonl", *chosen, *short, key="torch2.14")
    assert {(record["source"], record["observation"]) for record in records} == {
        ("torch-prod", "equal"), ("torch-erfinv", "equal")}  # fmt: skip


PLACES = """import torch
tensors = [torch.zeros(100, device="cuda") for _ in range(6)]
print([tensor.data_ptr() - tensors[0].data_ptr() for tensor in tensors])
"""


def test_a_seed_of_addresses_moves_each_tensor(tmp_path: Path) -> None:
    """With a cache of its own, PyTorch divides one allocation of the device."""
    command = ["vgpu", "--", *program_command("torch2.14", tmp_path, PLACES)]

    def distances(seed: str, variables: dict[str, str]) -> Any:
        environment = {**os.environ, **variables, "VGPU_PLACEMENT": seed}
        done = subprocess.run(
            [sys.executable, "-m", "tfdet", *command], env=environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    assert distances("1", {}) == distances("2", {}) == [512 * number for number in range(6)]
    assert distances("1", Adapter().own_allocations()) != distances("2", Adapter().own_allocations())


TENSORS = """import ctypes, tensorflow as tf
with tf.device("/GPU:0"):
    tensors = [tf.ones([100]) for _ in range(6)]
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsules = [tf.experimental.dlpack.to_dlpack(tensor) for tensor in tensors]
places = [ctypes.cast(pointer(one, b"dltensor"), ctypes.POINTER(ctypes.c_uint64))[0] for one in capsules]
print([place - places[0] for place in places])
"""


@pytest.mark.parametrize("version", ["2.8", "2.21"])
@weekly.ONLY
def test_a_seed_of_addresses_moves_each_tensor_of_tensorflow(version: str, tmp_path: Path) -> None:
    """Some versions refuse the allocator of others."""
    name = allocators.own_allocations(tuple(map(int, version.split("."))))
    command = [sys.executable, "-m", "tfdet", "vgpu", "--", *program_command(f"tf{version}", tmp_path, TENSORS)]

    def distances(seed: str) -> Any:
        environment = {**os.environ, "TF_GPU_ALLOCATOR": name, "VGPU_PLACEMENT": seed}
        return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    assert distances("1") != distances("2")


GRAPH = """import torch
values, owners = torch.arange(8., device="cuda"), torch.tensor([0, 1, 0, 1, 2, 3, 3, 3], device="cuda")
sums = torch.zeros(4, device="cuda")
def step():
    doubled = values * 2
    sums.zero_().index_add_(0, owners, doubled)
    return torch.nn.functional.dropout(doubled, 0.5)
torch.cuda.manual_seed(1)
expected = step().cpu()
side = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=side):
    dropped = step()
values.copy_(torch.arange(8., 16.))
graph.replay()
assert sums.tolist() == [36.0, 40.0, 24.0, 84.0], sums
values.copy_(torch.arange(8.))
torch.cuda.manual_seed(1)
graph.replay()
assert torch.equal(dropped.cpu(), expected)
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        values.sum().item()
except RuntimeError as error:
    assert "capture" in str(error).lower(), error
print(values.sum().item())
"""


STEP = """import copy, torch
from torch.nn.functional import mse_loss
torch.manual_seed(1)
dense = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)
model = torch.nn.Sequential(torch.nn.Conv1d(2, 2, 3, padding=1), torch.nn.BatchNorm1d(2), *dense)
batches, targets = torch.randn(3, 5, 2, 8), torch.randn(3, 5, 2, 4)
there = copy.deepcopy(model).cuda()
there(batches[0].cuda()).sum().backward()  # cuBLAS's handles and workspaces, before the capture
rate, x, y = 0.1, batches[0].cuda(), targets[0].cuda()
for parameter in there.parameters():
    parameter.grad = None
step, optimizer = torch.cuda.CUDAGraph(), torch.optim.SGD(there.parameters(), rate)
with torch.cuda.graph(step):
    loss = mse_loss(there(x), y)
    loss.backward()
    optimizer.step()
here = torch.optim.SGD(model.parameters(), rate)
for batch, target in zip(batches, targets):
    x.copy_(batch), y.copy_(target)
    step.replay()
    here.zero_grad()
    expected = mse_loss(model(batch), target)
    expected.backward()
    here.step()
    assert abs(loss.item() - expected.item()) < 1e-6, (loss, expected)
print(max((a.cpu() - b).abs().max().item() for a, b in zip(there.parameters(), model.parameters())) < 1e-6)
"""


NETWORKS = """import copy, os, torch
torch.manual_seed(1)
torch.backends.cudnn.enabled = os.environ["VGPU_CPU_FALLBACKS"] == "all"
layers = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
network = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(128, 10))
images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
def train(network, device):
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
    return loss.item()
assert abs(train(copy.deepcopy(network).cuda(), "cuda") - train(network, "cpu")) < 1e-5
words = torch.randn(5, 3, 16)
recurrent = torch.nn.LSTM(16, 6, 2), torch.nn.GRU(16, 6, bidirectional=True)
for layer in *recurrent, torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0):
    places = (layer, "cpu"), (copy.deepcopy(layer).cuda(), "cuda")
    outputs = [model(words.to(device)) for model, device in places]
    here, there = (one[0] if isinstance(one, tuple) else one for one in outputs)
    assert (here - there.cpu()).abs().max() < 1e-5
"""


def run_on_vgpu(tmp_path: Path, program: str, **variables: str) -> str:
    """Run a PyTorch program on the virtual GPU; return what it prints."""
    command = program_command("torch2.14", tmp_path, program)
    library = subprocess.run(
        [sys.executable, str(find_project().vgpu / "build.py")], check=True, capture_output=True, text=True
    ).stdout.strip()
    environ = {**os.environ, "LD_LIBRARY_PATH": library, "VGPU_COMPUTE_CAPABILITY": "80", **variables}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environ)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_pytorch_captures_cuda_graphs(tmp_path: Path) -> None:
    """A captured graph is replayed, with random numbers, too; an op that may not be captured ends the capture only."""
    assert run_on_vgpu(tmp_path, GRAPH) == "28.0\n"


def test_pytorch_captures_a_step_of_training(tmp_path: Path) -> None:
    """Its layers call cuBLAS, cublasLt and cuDNN, which are computed when the graph is launched."""
    assert run_on_vgpu(tmp_path, STEP, VGPU_CPU_FALLBACKS="all") == "True\n"


@pytest.mark.parametrize("fallbacks", ["cublas", "all"])
def test_pytorch_trains_whole_networks(tmp_path: Path, fallbacks: str) -> None:
    """Convolutions, LSTMs and attention give the CPU's results, by PyTorch's kernels or as cuDNN."""
    run_on_vgpu(tmp_path, NETWORKS, VGPU_CPU_FALLBACKS=fallbacks)


def test_ops_are_proved_or_have_a_reason(tmp_path: Path) -> None:
    chosen = ["--prove", "--source", "reduce-sum", "--source", "segment-sum", "--solution", "none"]
    records = run_suite(tmp_path / "records.jsonl", *chosen, "--case", "*-eager")
    assert {(record["repeats"], record["relaunches"]) for record in records} == {(1, 1)}  # relaunches: processes
    by_source: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_source.setdefault(record["source"], []).append(record["proof"])
    for proof in by_source["reduce-sum"]:
        # host: calls of the host that end the proof; observed: schedules of the runs
        assert (proof["host"], proof["observed"]) == ([], ["serial", "reverse"])
        assert {kernel["proved"] == kernel["launches"] > 0 for kernel in proof["kernels"]} == {True}
    for proof in by_source["segment-sum"]:
        reasons = {why["reason"] for kernel in proof["kernels"] for why in kernel["reasons"]}
        assert reasons
        assert reasons <= {"rounding", "race"}
    repeated = run_suite(tmp_path / "records.jsonl", *chosen, "--case", "*-eager")
    assert repeated == records, "what was proved is not proved again"


def test_a_replaced_product_has_its_kernels_within_a_function(tmp_path: Path) -> None:
    """TensorFlow's optimizer adds BroadcastTo, which old GPU builds lack for 64-bit integers."""
    chosen = ["--source", "unsorted-segment-prod", "--solution", "ED", "--repeats", "3", "--processes", "1"]
    records = run_suite(tmp_path / "records.jsonl", *chosen)
    observations = {(record["solution"], record["observation"]) for record in records}
    assert observations == {("none", "differs"), ("ED", "equal")}


def test_a_call_of_a_vendor_library_is_unsupported_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU fallbacks are never used for evidence, even if the shell enables them."""
    monkeypatch.setenv("VGPU_CPU_FALLBACKS", "all")
    chosen = ["--source", "cudnn-max-pool-backprop", "--solution", "none", "--repeats", "1", "--processes", "1"]
    records = run_suite(tmp_path / "records.jsonl", *chosen)
    assert {record["observation"] for record in records} == {"unsupported"}
    assert all("cudnnPoolingForward" in record["error"]["message"] for record in records)


@weekly.ONLY  # test_minimize_schedule.py is shorter
def test_a_difference_is_minimized_to_two_atomics(tmp_path: Path) -> None:
    """Each warp has one addend of a column: exchanging two warps' atomics changes the result."""
    searched = program_command("tf2.0", tmp_path, PROGRAM)
    command = [sys.executable, str(find_project().vgpu / "minimize_schedule.py"), "--", *searched]
    silent = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=silent)
    assert done.returncode == 0, done.stderr[-3000:]
    # VGPU_SCHEDULE=NAME:SEED@LAUNCH:FROM-TO makes only these choices of that launch.
    schedule, *pairs = done.stdout.splitlines()
    assert re.match(r"VGPU_SCHEDULE=atomics:\d@\d+:(\d+)-\1   \(1 choices", schedule), done.stdout
    assert len(pairs) == 1
    assert re.search(
        r"UnsortedSegmentCustomKernel.*: the atomic of line (\d+) by thread (\d+) of block \d+, "
        r"the atomic of line \1 by thread (?!\2 )\d+ of block \d+: changed places at byte \d+ of allocation \d+$",
        pairs[0],
    )
