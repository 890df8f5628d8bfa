"""Programs of several processes: each has a trace, and the first cause of all processes is named.

The name of a process, its "rank" in a trace, is what a launcher gave it ("worker1"), or its parent's name and its role:
"0.fork-2" is the second fork of the first process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import weekly
from forks import TRACE, Forks, Job, traced
from traces import TraceBuilder

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.schema.format import TraceFormatError
from tfdeterminism.trace.schema.reader import load

PROGRAMS = Path(__file__).resolve().parent / "processes"


# By hand


def process_trace(folder: Path, name: str, parent: str | None = "0", **header: Any) -> TraceBuilder:
    """Return the builder of the trace of one process."""
    folder.mkdir(exist_ok=True)
    started = {"rank": name, "parent": parent, "started": 100.0}
    return TraceBuilder(folder / f"trace-{name}.tfdt", **{**started, **header})


def test_the_first_cause_of_all_processes_is_named(tmp_path: Path) -> None:
    """A child draws a number that its parent uses; the order is by time, not by step or name."""
    for run in (0, 1):
        parent = process_trace(tmp_path / str(run), "0", None)
        parent._writer.time(105.0)  # when the following records were made, in seconds as in `started`
        parent.record(parent.eager("train.py:9#0", "Sin"), run, 0)
        parent.end()
        child = process_trace(tmp_path / str(run), "0.Process-1")
        child._writer.time(104.0)
        child.record(child.eager("data.py:3#0", "RandomUniform", kind="random"), run, 3)
        child.end()
    diff = trace_diff.compare([str(tmp_path / "0"), str(tmp_path / "1")])
    assert [(culprit["op_type"], culprit["rank"]) for culprit in diff.culprits] == [("RandomUniform", "0.Process-1")]
    assert any(note.startswith("process 0: differs as well") for note in diff.notes)


@pytest.mark.parametrize("op", ["CollectiveReduceV2", "c10d.allreduce_.default"])
def test_a_value_from_another_process_is_no_cause(tmp_path: Path, op: str) -> None:
    """An all-reduce passes on another worker's value, although it is recorded before."""
    for run in (0, 1):
        receives = process_trace(tmp_path / str(run), "worker0")
        receives._writer.time(101.0)
        receives.record(receives.op("reduce", op), run)
        receives.end()
        draws = process_trace(tmp_path / str(run), "worker1")
        draws._writer.time(102.0)
        draws.record(draws.op("noise", "PyFunc", kind="feed"), run)
        draws.end()
    diff = trace_diff.compare([str(tmp_path / "0"), str(tmp_path / "1")])
    assert [(culprit["op_type"], culprit["rank"]) for culprit in diff.culprits] == [("PyFunc", "worker1")]


@pytest.mark.parametrize(("results", "code"), [([[1, 2], [3]], "same"), ([[1, 3], [4]], "diverged")])
def test_tasks_distributed_otherwise_among_workers_are_the_same(
    tmp_path: Path, results: list[list[int]], code: str
) -> None:
    """Which worker of a pool gets which task is random."""
    for run, shares in enumerate(([[1], [2, 3]], results)):
        for number, share in enumerate(shares):
            builder = process_trace(tmp_path / str(run), f"0.PoolWorker-{number}", weights="00")
            key = builder.eager("work.py:3#0", "Sin")
            for value in share:
                builder.record(key, value)
            builder.close_as_killed()  # as a pool ends its workers
    diff = trace_diff.compare([str(tmp_path / "0"), str(tmp_path / "1")])
    assert diff.result == code


@pytest.mark.parametrize(("steps", "result"), [((2, 2), "same"), ((2, 3), "same"), ((2, 4), "structure")])
def test_the_last_step_of_a_killed_child_may_be_missing(tmp_path: Path, steps: tuple[int, int], result: str) -> None:
    for run, count in enumerate(steps):
        builder = process_trace(tmp_path / str(run), "0.fork-1")
        key = builder.op("a")
        for step in range(count):
            builder.record(key, step, step)
        builder.close_as_killed()
    assert trace_diff.compare([str(tmp_path / "0"), str(tmp_path / "1")]).result == result


def test_a_child_that_only_one_run_has_is_a_difference(tmp_path: Path) -> None:
    for run in (0, 1):
        for name in ("0", "0.Process-1")[: 2 - run]:
            builder = process_trace(tmp_path / str(run), name, None if name == "0" else "0")
            builder.record(builder.op("a"), 1)
            builder.end()
    diff = trace_diff.compare([str(tmp_path / "0"), str(tmp_path / "1")])
    assert (diff.result, diff.notes) == ("structure", ["in one run only: process 0.Process-1"])


def test_a_worker_that_only_one_run_has_is_refused(tmp_path: Path) -> None:
    for run in (0, 1):
        for name in ("worker0", "worker1")[: 2 - run]:
            builder = process_trace(tmp_path / str(run), name, None)
            builder.record(builder.op("a"), 1)
            builder.end()
    with pytest.raises(TraceFormatError, match="worker1"):
        trace_diff.compare([str(tmp_path / "0"), str(tmp_path / "1")])


def test_inputs_are_captured_in_one_process_only(tmp_path: Path) -> None:
    """The culprit's key contains the process, and only that process captures its inputs."""
    from tfdeterminism.trace.capture import input_capture
    from tfdeterminism.trace.capture.identity import ProcessIdentity
    from tfdeterminism.trace.capture.recording import Recording

    capture = input_capture.parse(json.dumps({"node": "a", "rank": "0.fork-1"}))
    recording = Recording(str(tmp_path), capture=capture, identity=ProcessIdentity("0", "0", "0", "fork-1"))
    other = Recording(str(tmp_path), capture=capture, identity=ProcessIdentity("0", "0", "0", "fork-2"))
    assert (recording.captures_inputs(), other.captures_inputs()) == (True, False)


# In real TensorFlows


class Runs:
    """Two traced runs of a program. options: of a Job; fresh: no forks of a process that has imported TensorFlow."""

    def __init__(self, forks: Forks, folder: Path, program: str, *arguments: str, **options: Any) -> None:
        self.folders = [folder / name for name in "AB"]
        self.ran = forks.run([traced(folder, PROGRAMS / program, *arguments, **options) for folder in self.folders])

    def diff(self) -> trace_diff.TraceDiff:
        assert [completed.returncode for completed in self.ran] == [0, 0], self.ran[0].stderr[-3000:]
        return trace_diff.compare([str(folder) for folder in self.folders])

    def names(self) -> list[str]:
        """Return the names of processes that have a trace, without the first one, which did nothing."""
        names = sorted(path.name[len("trace-") : -len(".tfdt")] for path in self.folders[0].iterdir())
        return [name for name in names if name != "0"]


def line_of(program: str, marker: str) -> int:
    """Return the line of the program that is marked `# line: MARKER`."""
    lines = (PROGRAMS / program).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# line: {marker}"))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("key", "method", "fresh", "name"),
    [
        ("tf2.21", "fork", False, "0.ForkProcess-2"),  # TensorFlow is loaded when it forks
        ("tf2.21", "spawn", True, "0.SpawnProcess-2"),
        ("tf2.0", "forkserver", True, "0.ForkServerProcess-2"),
        ("tf2.0", "subprocess", False, "0.pool-2"),
        ("tf1.14", "os.fork", True, "0.fork-2"),
        ("tf1.14", "spawn", False, "0.SpawnProcess-2"),
    ],
)
def test_a_child_that_differs_is_named(
    forks: Callable[[str], Forks], tmp_path: Path, key: str, method: str, fresh: bool, name: str
) -> None:
    runs = Runs(forks(key), tmp_path, "pool.py", method, "noise", fresh=fresh)
    diff = runs.diff()
    (culprit,) = diff.culprits
    assert (culprit["class"], culprit["rank"], culprit["line"]) == ("Python feed", name, line_of("pool.py", "fed"))
    assert runs.names() == [name[:-1] + "1", name]
    end_blocks = [load(str(runs.folders[0] / f"trace-{path}.tfdt")).end for path in runs.names()]
    assert all(end is not None and end["weights"] and end["clean"] for end in end_blocks)


@pytest.mark.tensorflow
def test_advice_is_applied_in_child_processes(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    """The child inherits no state of its parent."""
    runs = Runs(forks("tf2.0"), tmp_path / "without", "pool.py", "subprocess", "global")
    assert [culprit["rank"] for culprit in runs.diff().culprits] == ["0.pool-2"]
    runs = Runs(
        forks("tf2.0"), tmp_path / "with", "pool.py", "subprocess", "global", options=["--apply-solutions", "SEED"]
    )
    assert runs.diff().result == "same"
    assert runs.names() == ["0.pool-1", "0.pool-2"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", ["tf2.21", "tf2.0"])
def test_a_worker_that_differs_is_named(forks: Callable[[str], Forks], tmp_path: Path, key: str) -> None:
    """MultiWorkerMirroredStrategy: the parent that starts the workers computes nothing with TensorFlow."""
    runs = Runs(forks(key), tmp_path, "workers.py", "noise", fresh=True, alone=True)
    diff = runs.diff()
    assert runs.names() == ["worker0", "worker1"]
    (culprit,) = diff.culprits
    assert (culprit["op_type"], culprit["rank"], culprit["line"]) == (
        "PyFunc" if key != "tf2.0" else culprit["op_type"], "worker1", line_of("workers.py", "noisy"))  # fmt: skip


@pytest.mark.tensorflow
def test_a_child_that_dies_by_a_signal_is_read_up_to_there(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    killed = Runs(forks("tf2.0"), tmp_path, "pool.py", "os.fork", "kill")
    diff = killed.diff()
    assert (diff.result, diff.culprits) == ("same", [])
    assert any("0.fork-2" in note and "ended from outside" in note for note in diff.notes)
    complete = Runs(forks("tf2.0"), tmp_path / "whole", "pool.py", "os.fork", "none")
    diff = trace_diff.compare([str(killed.folders[0]), str(complete.folders[0])])
    assert (diff.result, diff.culprits) == ("structure", [])
    assert diff.end_mismatch is not None
    assert "0.fork-2" in diff.end_mismatch


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", ["tf2.21", "tf1.14"])
def test_children_without_tensorflow_leave_nothing_and_load_nothing(
    forks: Callable[[str], Forks], tmp_path: Path, key: str
) -> None:
    """A fork that computes nothing, and a Python with its own sitecustomize."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.own = 'the user has one'\n")
    program = tmp_path / "train.py"
    program.write_text(
        "import os, subprocess, sys\nimport tensorflow as tf\n"
        "if tf.__version__ < '2': tf.compat.v1.enable_eager_execution()\n"
        "tf.sin(tf.ones([2]))\n"
        "child = os.fork()\nif not child: os._exit(0)\nos.waitpid(child, 0)\n"
        'tell = \'import sys; print(sys.own, [m for m in ("tfdeterminism", "numpy", "tensorflow") if m in sys.modules],'
        ' [p for p in sys.path if "hook" in p], sitecustomize_of())\'\n'
        "tell = 'import sitecustomize\\ndef sitecustomize_of(): return sitecustomize.__file__\\n' + tell\n"
        f"print(subprocess.check_output([sys.executable, '-c', tell], env=dict(os.environ, PYTHONPATH={str(folder)!r}))"
        ".decode().strip())\n"
    )
    (ran,) = forks(key).run([traced(tmp_path / "A", program)])
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == f"the user has one [] [] {folder / 'sitecustomize.py'}\n"
    assert os.listdir(tmp_path / "A") == ["trace-0.tfdt"]


@weekly.on_day(5)
@pytest.mark.tensorflow
def test_the_search_finds_the_child(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    """Untraced runs differ only in the weights of a child."""
    options = ["--trace-only", "--json", "--max-runs", "3", "--keep-traces", str(tmp_path / "kept")]
    program = [str(PROGRAMS / "pool.py"), "os.fork", "noise"]
    job = Job([*TRACE, "locate", *options, "--", *program], fresh=True, alone=True)
    (ran,) = forks("tf2.0").run([job])
    assert ran.returncode == 1, ran.stderr[-3000:]
    output = json.loads(ran.stdout)
    assert [(culprit["class"], culprit["rank"]) for culprit in output["culprits"]] == [("Python feed", "0.fork-2")]
    assert output["verdict"].endswith(f"in process 0.fork-2 ({PROGRAMS / 'pool.py'}:{line_of('pool.py', 'fed')}).")
    assert any("final weights differ from run to run" in line for line in output["findings"])
