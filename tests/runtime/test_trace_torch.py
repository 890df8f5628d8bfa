"""PyTorch: each program of its collection recorded twice and compared; whole searches of some; what replay refuses.

All of them searched whole: python benchmarks/trace_collection.py torch2.13.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import weekly
from collection import TORCH_ENVIRONMENTS, Program, faults, programs
from forks import TRACE, Forks, environ, traced

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.schema.reader import Trace, load

ENVIRONMENT = TORCH_ENVIRONMENTS[0]
RACE = 20  # maximum runs of a race (a program that is `fresh`): two agree if its threads happen not to overlap
# The message of a process that aborts because a thread still runs at its exit: 1 of 50 PyTorch runs of two ranks.
THREAD_AT_EXIT = "terminate called without an active exception"
# Programs of the collection of which a complete search is tested here.
SEARCHED = ("clean_numpy_memory", "feed_numpy_late")


@pytest.fixture(scope="session")
def torch_forks(torch_python: Path, forks: Callable[[str], Forks]) -> Forks:
    """Runs programs in forks of a process that has imported PyTorch."""
    return forks(ENVIRONMENT)


def test_each_program_has_a_true_expectation() -> None:
    all_programs = programs(ENVIRONMENT)
    assert len({race_program.form for race_program in all_programs}) >= 8
    for candidate in all_programs:
        assert candidate.name.startswith("clean_") == (candidate.outcome == "same"), candidate.name
        assert len(candidate.lines) == len(candidate.expected), candidate.name


@weekly.on_day(1, days=2)
@pytest.mark.tensorflow
def test_two_runs_of_each_program_show_the_expected_cause(torch_forks: Forks, tmp_path: Path) -> None:
    all_programs = [candidate for candidate in programs(ENVIRONMENT) if not candidate.fresh]
    runs = {candidate.name: [tmp_path / f"{candidate.name}-{run}" for run in range(2)] for candidate in all_programs}
    done = torch_forks.run([traced(out, candidate.path) for candidate in all_programs for out in runs[candidate.name]])
    assert not [completed.stderr for completed in done if completed.returncode]
    wrong = {candidate.name: candidate.faults(compare_runs(*runs[candidate.name])) for candidate in all_programs}
    assert not {name: messages for name, messages in wrong.items() if messages}


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "race",
    weekly.select_for_today([race_program for race_program in programs(ENVIRONMENT) if race_program.fresh], days=2),
    ids=lambda race_program: race_program.name,
)
def test_two_differing_runs_of_a_race_show_the_expected_cause(
    race: Program, torch_forks: Forks, tmp_path: Path
) -> None:
    recorded: list[Path] = []
    for run in range(RACE):
        out = tmp_path / str(run)
        (done,) = torch_forks.run([traced(out, race.path, fresh=True, alone=True)])
        if THREAD_AT_EXIT in done.stderr:
            continue
        assert done.returncode == 0, done.stderr
        recorded.append(out)
        if len(recorded) > 1 and (diff := compare_runs(recorded[0], out))["result"] != "same":
            break
    assert race.faults(diff) == []


def compare_runs(first: Path, second: Path) -> dict[str, object]:
    diff = trace_diff.compare([str(first), str(second)])
    return {"result": diff.result, "culprits": diff.culprits, "verdict": diff.culprits or diff.result}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SEARCHED)
def test_complete_searches_of_some_programs_are_right(name: str, torch_forks: Forks, tmp_path: Path) -> None:
    (program,) = [candidate for candidate in programs(ENVIRONMENT) if candidate.name == name]
    assert faults(program, torch_forks, tmp_path) == []


@pytest.mark.tensorflow
def test_weights_have_the_names_of_the_model(torch_forks: Forks, tmp_path: Path) -> None:
    program = program_of("clean_training")
    (done,) = torch_forks.run([traced(tmp_path / "A", program.path, options=["--level", "weights"])])
    assert done.returncode == 0, done.stderr
    end = load(str(tmp_path / "A" / "trace-0.tfdt")).end
    assert sorted(end["variables"]) == [f"Sequential.{n}.{kind}" for n in (0, 3) for kind in ("bias", "weight")]
    assert end["steps"] == 4


@pytest.mark.tensorflow
def test_a_trace_names_its_program_where_pytorch_was_imported_before_it(torch_forks: Forks, tmp_path: Path) -> None:
    """Otherwise traces of two programs could be compared, and the output folder would count as an argument."""
    program = program_of("clean_training")
    (done,) = torch_forks.run([traced(tmp_path / "A", program.path, "3", options=["--level", "none"])])
    assert done.returncode == 0, done.stderr
    assert load(str(tmp_path / "A" / "trace-0.tfdt")).header["argv"] == [str(program.path), "3"]


@pytest.mark.tensorflow
def test_probes_change_nothing(torch_forks: Forks, tmp_path: Path) -> None:
    program = program_of("clean_training")
    levels = ("none", "weights", "layers", "ops")
    done = torch_forks.run([traced(tmp_path / level, program.path, options=["--level", level]) for level in levels])
    assert {completed.stdout for completed in done} == {done[0].stdout}
    assert len({load(str(tmp_path / level / "trace-0.tfdt")).end["weights"] for level in levels}) == 1


HOLDING = """
import torch
torch.set_num_threads(1)
layers = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
optimizer = torch.optim.Adam(layers.parameters())
x = torch.rand(256, 256)

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) >> 8

def steps(count):
    for _ in range(count):
        optimizer.zero_grad()
        layers(x).square().mean().backward()
        optimizer.step()

steps(5)
before = megabytes()
steps(30)
print(megabytes() - before)
"""


@pytest.mark.tensorflow
def test_records_of_freed_memory_do_not_fragment_it(torch_forks: Forks, tmp_path: Path) -> None:
    """A few bytes kept between large tensors would fragment the memory."""
    program = tmp_path / "holding.py"
    program.write_text(HOLDING)
    (done,) = torch_forks.run([traced(tmp_path / "A", program)])
    assert done.returncode == 0 and int(done.stdout) < 100, done.stdout + done.stderr


THREADS = """
import sys
import threading
import torch
from tfdeterminism.trace.capture.torch.storage import StorageRegistry

sys.setswitchinterval(1e-6)
registry, right = StorageRegistry(), []

def work(me):
    for _ in range(200):
        held = [torch.empty(1) for _ in range(20)]
        for one in held:
            registry.find(one).keys = [me]
        for _ in range(200):
            registry.find(torch.empty(1))
        right.extend(registry.find(one).keys == [me] for one in held)

threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(len(right), right.count(False))
"""


@pytest.mark.tensorflow
def test_the_storage_registry_is_thread_safe(torch_python: Path) -> None:
    done = subprocess.run([torch_python, "-c", THREADS], env=environ(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12000", "0"], done.stderr


# PyTorch 2.0 has no Module.compile.
AS_IN_2_0 = """
import torch
from tfdeterminism.trace.capture.torch import compiled
del torch.nn.Module.compile


class Wrappers(object):
    def wrap(self, owner, name, wrapper):
        print(owner.__name__ + "." + name, hasattr(owner, name))


compiled.switch_off(None, Wrappers())
"""


@pytest.mark.tensorflow
def test_a_version_whose_modules_compile_nothing_is_traced(torch_python: Path) -> None:
    done = subprocess.run([torch_python, "-c", AS_IN_2_0], env=environ(), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "torch.compile True\n"), done.stderr


@pytest.mark.tensorflow
def test_replay_runs_no_op_that_does_more_than_compute(torch_python: Path) -> None:
    ops = ["aten.index_put.default", "aten.from_file.default", "c10d.broadcast_.default", "aten.nothing.default",
           "prims.add.default", "aten.set_.source_Storage"]  # fmt: skip
    words = f"from tfdeterminism.trace.capture.torch.replay import is_pure; print([is_pure(x) for x in {ops}])"
    done = subprocess.run([torch_python, "-c", words], env=environ(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([True, False, False, False, False, False])


@pytest.fixture(scope="module")
def kept_file(torch_forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Capture the inputs of a matrix product; return the file, in the folder of its trace."""
    folder = tmp_path_factory.mktemp("kept")
    program = folder / "train.py"
    program.write_text("import torch\nx = torch.ones(3, 3)\ny = torch.mm(x, x.t())\n")
    node = {"node": f"aten.mm.default@{program}:3#0"}
    (done,) = torch_forks.run([traced(folder / "A", program, options=["--capture-inputs", json.dumps(node)])])
    assert done.returncode == 0, done.stderr
    (path,) = (folder / "A").glob("capture-*.npz")
    return path


def replayed_on(device: str, capture: Path, python: Path) -> subprocess.CompletedProcess[str]:
    """Replay a copy of the capture that names this device for all inputs."""
    with numpy.load(capture) as arrays:
        parts = dict(arrays)
    meta = json.loads(parts["meta"].tobytes())
    assert meta["devices"] == ["cpu", "cpu"]
    meta_bytes = json.dumps({**meta, "devices": [device] * 2}).encode()
    changed = capture.parent.parent / device.partition(":")[0]
    shutil.copytree(capture.parent, changed)
    numpy.savez(changed / capture.name, **{**parts, "meta": numpy.frombuffer(meta_bytes, numpy.uint8)})
    command = [python, "-m", "tfdeterminism.trace", "replay", str(changed / capture.name), "--repeats", "2"]
    return subprocess.run(command, env=environ(), capture_output=True, text=True, check=False)


@pytest.mark.tensorflow
def test_an_op_is_replayed_where_it_ran(kept_file: Path, torch_python: Path) -> None:
    done = replayed_on("cpu", kept_file, torch_python)
    assert json.loads(done.stdout)["distinct"] == [1], done.stderr
    done = replayed_on("meta", kept_file, torch_python)  # there is no value there, as it would have on a CPU
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.tensorflow
def test_no_other_device_is_asked_instead(kept_file: Path, torch_python: Path) -> None:
    done = replayed_on("cuda:77", kept_file, torch_python)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it ran on cuda:77, which is not here" in done.stderr


PART = """
import sys, torch
table, weights = torch.ones(64, 8), torch.ones(8, 2, requires_grad=True)
part = table[int(sys.argv[1]):][:4]
for _ in range(3):
    torch.autograd.grad((part @ weights).sum(), weights)
"""


@pytest.mark.tensorflow
def test_which_part_of_a_memory_is_read_is_reported_though_it_was_cut_before(
    torch_forks: Forks, tmp_path: Path
) -> None:
    """The slices have equal bytes, and the ops that sliced them were not recorded."""
    program = tmp_path / "program.py"
    program.write_text(PART)
    options = ["--steps", "1:3"]
    done = torch_forks.run([traced(tmp_path / limit, program, limit, options=options) for limit in ("8", "16")])
    assert [completed.returncode for completed in done] == [0, 0], done[0].stderr
    products_by_run = [products(load(str(tmp_path / limit / "trace-0.tfdt"))) for limit in ("8", "16")]
    assert products_by_run[0] and products_by_run[1] and products_by_run[0] != products_by_run[1]


def products(trace: Trace) -> set[int]:
    """Return the digests of what the product's line reads beside values: numbers, and the part of a memory."""
    line = PART.splitlines().index("    torch.autograd.grad((part @ weights).sum(), weights)") + 1
    keys = [
        definition["id"]
        for definition in trace.definitions
        if (definition["op"], definition["line"]) == ("Python", line)
    ]
    return set(trace.records["digest"][numpy.isin(trace.records["key"], keys)].tolist())


@pytest.mark.tensorflow
def test_advice_is_applied_without_a_change_of_the_program(torch_forks: Forks, tmp_path: Path) -> None:
    program = program_of("seed_of_initial_weights").path
    options = ["--level", "none", "--apply-solutions", "SEED,UDA"]
    outs = [tmp_path / run for run in "AB"]
    done = torch_forks.run([traced(out, program, options=options, fresh=True) for out in outs])
    assert [completed.returncode for completed in done] == [0, 0], done[0].stderr
    assert len({load(str(out / "trace-0.tfdt")).end["weights"] for out in outs}) == 1


def program_of(name: str) -> Program:
    return next(candidate for candidate in programs(ENVIRONMENT) if candidate.name == name)


INHERITED = """
import os, torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()

for train in (step, lambda: None):
    child = os.fork()
    if not child:
        train()
        raise SystemExit
    os.waitpid(child, 0)
step()
"""


@pytest.mark.tensorflow
def test_a_fork_trains_what_it_inherits_only_if_it_steps(torch_python: Path, tmp_path: Path) -> None:
    """For example, a pool's worker, which is killed after its work, has its parent's weights."""
    (tmp_path / "program.py").write_text(INHERITED)
    command = [str(torch_python), *TRACE, "run", "--level", "none", "--out", str(tmp_path / "A"), "--"]
    subprocess.run([*command, str(tmp_path / "program.py")], env=environ(), check=True, capture_output=True)
    assert sorted(path.name for path in (tmp_path / "A").iterdir()) == ["trace-0.fork-1.tfdt", "trace-0.tfdt"]
    weights = [load(str(path)).end["weights"] for path in (tmp_path / "A").iterdir()]
    assert weights[0] == weights[1]  # each has stepped once


GRADIENT = """
import random, torch
values = torch.ones(3, requires_grad=True)
(values * random.Random().random()).sum().backward()
"""
# The function frees its weights, and drops their gradients, before the program ends.
DESCENT = """
import random, torch

def train(rate):
    layer = torch.nn.Linear(3, 1)
    for _ in range(2):
        layer(torch.ones(2, 3)).sum().backward()
        with torch.no_grad():
            for weight in layer.parameters():
                weight -= rate * weight.grad
                weight.grad = None

torch.manual_seed(0)
train(random.Random().random())
"""


KEYWORDS = """
import torch
values = torch.ones(3, requires_grad=True)
(gradient,) = torch.autograd.grad(outputs=(values * values).sum(), inputs=values, create_graph=True)
torch.autograd.backward(tensors=[gradient.sum()])
"""


@pytest.mark.parametrize("level", ["none", "ops"])
@pytest.mark.tensorflow
def test_gradients_are_recorded_of_arguments_by_keyword(level: str, torch_forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(KEYWORDS)
    (done,) = torch_forks.run([traced(tmp_path / "A", tmp_path / "program.py", options=["--level", level], fresh=True)])
    assert done.returncode == 0, done.stderr
    assert load(str(tmp_path / "A" / "trace-0.tfdt")).end["weights"] is not None


@pytest.mark.parametrize("text", [GRADIENT, DESCENT])
@pytest.mark.tensorflow
def test_without_an_optimizer_a_difference_is_seen(text: str, torch_forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(text)
    outs = [tmp_path / run for run in "AB"]
    options = ["--level", "none"]
    done = torch_forks.run([traced(out, tmp_path / "program.py", options=options, fresh=True) for out in outs])
    assert [completed.returncode for completed in done] == [0, 0], done[0].stderr
    assert len({load(str(out / "trace-0.tfdt")).end["weights"] for out in outs}) == 2


KEPT = """
import os, torch
torch.manual_seed(0)
kept = os.environ["KEPT"]
weight = torch.ones(3)
if os.path.exists(kept):
    weight = torch.load(kept)
weight.requires_grad_()
optimizer = torch.optim.SGD([weight], lr=0.1)
(weight * weight).sum().backward()
optimizer.step()
torch.save(weight.detach(), kept)
"""


@weekly.on_day(1)
@pytest.mark.tensorflow
def test_files_that_torch_saves_outside_the_folder_are_restored(torch_python: Path, tmp_path: Path) -> None:
    """PyTorch writes the file from C++; the user's file is as before."""
    folder, outside_file = tmp_path / "program", tmp_path / "kept.pt"
    folder.mkdir()
    (folder / "main.py").write_text(KEPT)
    variables = {**environ(), "KEPT": str(outside_file)}
    subprocess.run([torch_python, folder / "main.py"], env=variables, check=True)
    before = outside_file.read_bytes()
    done = subprocess.run([torch_python, *TRACE, "locate", "--json", "--", "main.py"], cwd=folder, env=variables,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1, done.stderr
    (cause,) = json.loads(done.stdout)["causes"]
    assert (cause["kind"], {place["line"] for place in cause["places"]} <= {6, 7}) == ("files", True)
    assert outside_file.read_bytes() == before
