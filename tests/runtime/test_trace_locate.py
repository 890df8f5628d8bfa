"""`trace locate`: the search on handwritten runs, and complete searches in a real TensorFlow.

The level of a run says what it records: "none" (an untraced run, with a digest of its final weights), "weights",
"layers", "unordered" (only ops that a graph leaves unordered), or all "ops".
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import weekly
from traces import TraceBuilder

from tfdeterminism.trace.interpose import variables
from tfdeterminism.trace.schema.reader import load
from tfdeterminism.trace.search.program_runner import NothingRecordedError
from tfdeterminism.trace.search.progress import Progress
from tfdeterminism.trace.search.search import Search

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "runtime" / "programs"
Script = Callable[[TraceBuilder, str, int, dict[str, str]], None]  # (trace, level, number of the run, environment)


class ScriptedRuns(Search):
    """Returns handwritten runs, and starts no program."""

    def __init__(self, folder: Path, script: Script, **options: Any) -> None:
        super().__init__(["train.py"], str(folder), progress=Progress(8, out=io.StringIO()), **options)
        self._script = script
        self.asked: list[tuple[str, Any]] = []  # (level, steps: [first, end] or None) of each run

    def _run(self, level: str, steps: Any, more: Sequence[str] = (), environment: Any = None) -> str:
        self.asked.append((level, list(steps) if steps else None))
        self.result.runs += level != "none"
        folder = Path(self._folder, str(len(self.asked)))
        folder.mkdir()
        builder = TraceBuilder(folder / "trace-0.tfdt", level=level, steps=list(steps) if steps else None)
        builder.steps = steps  # type: ignore[attr-defined]
        self._script(builder, level, len(self.asked), environment or {})
        builder.end(weights=builder.weights)  # type: ignore[attr-defined]
        self._store_digests(level, str(folder))
        return str(folder)


def program(differs: Callable[[int, dict[str, str]], object], kind: str = "op") -> Script:
    """Return a program of four steps whose op `culprit` differs at step 2 by differs(run, environment)."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        value = differs(run, environment)
        builder.weights = f"{hash(str(value)) & 0xFFFF:04x}"  # type: ignore[attr-defined]
        if level == "none":
            return
        ops = [builder.op("weight", "weight", function="", kind=level.rstrip("s"))]
        if level == "ops":
            ops = [builder.op("MatMul")]
            ops.append(builder.op("culprit", "PyFunc" if kind == "feed" else "MatMul", (ops[0],), kind=kind))
        for step in range(4):
            for key in ops:
                bad = step > 2 or (step == 2 and key == ops[-1])
                builder.record(key, (step, value if bad else 0), step)

    return script


def test_a_clean_program_is_run_as_often_as_asked_and_once_untraced(tmp_path: Path) -> None:
    search = ScriptedRuns(tmp_path, program(lambda run, environment: 0), runs=4)
    diff = search.search()
    levels = ["none"] + ["weights"] * 4 + ["none"] * 2
    assert (diff.code, diff.runs, [level for level, _ in search.asked]) == (0, 4, levels)
    assert diff.verdict() == "No difference in 4 runs."
    assert diff.findings == ["final weights: bit-identical to those of an untraced run"]


def test_instrumenting_that_changes_the_program_is_reported(tmp_path: Path) -> None:
    search = ScriptedRuns(tmp_path, program(lambda run, environment: 1 < run < 5), runs=3)
    assert "instrumenting changed the program" in search.search().findings[-1]


def test_recording_levels_are_tried_up_to_ops(tmp_path: Path) -> None:
    search = ScriptedRuns(tmp_path, program(lambda run, environment: run, kind="feed"), runs=5)
    os.environ["PYTHONHASHSEED"] = "0"  # then it is no candidate
    try:
        diff = search.search()
    finally:
        del os.environ["PYTHONHASHSEED"]
    ladder = [("weights", None)] * 2 + [("layers", [0, 3])] * 2 + [("ops", [2, 3])] * 2
    values = [("ops", [2, 4])] * 2  # two more runs record values beside digests
    assert search.asked == [("none", None), *ladder, ("none", None), *values]
    assert (diff.code, [culprit["op_name"] for culprit in diff.culprits]) == (1, ["culprit"])
    assert diff.verdict() == "PyFunc at step 2: Python feed (train.py:12)."


def test_a_rare_difference_is_searched_in_more_runs(tmp_path: Path) -> None:
    """Runs 5, 10 and 15 differ from the others, at each level."""
    search = ScriptedRuns(tmp_path, program(lambda run, environment: run in (5, 10, 15) and run, kind="random"), runs=6)
    diff = search.search()
    assert diff.code == 1
    assert [level for level, _ in search.asked].count("weights") == 4


def test_a_fixed_hash_seed_is_tried(tmp_path: Path) -> None:
    def by_hash(run: int, environment: dict[str, str]) -> object:
        return environment.get("PYTHONHASHSEED", run)

    diff = ScriptedRuns(tmp_path, program(by_hash, kind="feed")).search()
    assert "with PYTHONHASHSEED=0 the runs are the same" in diff.findings[-2]
    assert (diff.culprits[0]["source"], diff.culprits[0]["solution"]) == ("python-set-order", "PYHASH")


def test_random_noise_is_not_taken_for_the_order_of_a_set(tmp_path: Path) -> None:
    diff = ScriptedRuns(tmp_path, program(lambda run, environment: run, kind="feed")).search()
    assert "still differ" in diff.findings[-2]
    assert diff.culprits[0]["source"] is None


@pytest.mark.parametrize("empty", [("weights",), ("layers",), ("weights", "layers")])
def test_a_level_without_records_is_skipped(tmp_path: Path, empty: tuple[str, ...]) -> None:
    """The program has no variables, or no layers."""
    complete = program(lambda run, environment: run, kind="random")

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        if level in empty:
            raise NothingRecordedError("no TensorFlow op was seen", "is it a TensorFlow program?")
        complete(builder, level, run, environment)

    search = ScriptedRuns(tmp_path, script)
    assert [culprit["op_name"] for culprit in search.search().culprits] == ["culprit"]


def test_where_recording_begins_too_late_all_steps_are_recorded(tmp_path: Path) -> None:
    """A variable differs before the recorded step, so the cause is earlier."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{run:04x}"  # type: ignore[attr-defined]
        kind = {"weights": "weight", "layers": "layer", "ops": "read"}.get(level, "op")
        noise = builder.op("noise", "PyFunc", kind="feed")
        read = builder.op("read", "ReadVariableOp", kind=kind, variable="w")
        write = builder.op("write", "AssignVariableOp", (noise,), kind="write", variable="w", output=-1)
        for step in range(*(builder.steps or (0, 3))):  # type: ignore[attr-defined]
            builder.record(read, run if step > 1 else 0, step)
            if level == "ops":
                builder.record(noise, run if step == 1 else 0, step)
                builder.write(write, step)

    search = ScriptedRuns(tmp_path, script)
    diff = search.search()
    assert [steps for level, steps in search.asked if level == "ops"][:4] == [[2, 3]] * 2 + [[0, 3]] * 2
    assert (diff.culprits[0]["op_name"], diff.culprits[0]["step"]) == ("noise", 1)


def test_a_race_that_tracing_masks_is_reported(tmp_path: Path) -> None:
    """Untraced runs differ and traced ones agree: the verdict lists the accesses that the graph leaves unordered."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{run if level == 'none' else 0:04x}"  # type: ignore[attr-defined]
        if level != "none":
            builder.record(
                builder.op("draw", "RandomUniform", kind="random", attrs={"unordered": "in any order"}, line=7), 1
            )

    search = ScriptedRuns(tmp_path, script, runs=3)
    diff = search.search()
    assert (diff.code, diff.masked_by_tracing, diff.result) == (1, True, "diverged")
    assert diff.verdict() == (
        "Your program differs, the probes hide it. What may run in any order: RandomUniform (train.py:7)."
    )
    assert [(culprit["class"], culprit["why"]) for culprit in diff.culprits] == [("unordered access", "in any order")]
    levels = ["none", *["weights"] * 3, "none", *["ops"] * 3, *["unordered"] * 3, *["none", "ops"] * 5]
    assert [level for level, _ in search.asked] == levels


def test_a_race_that_shows_where_few_ops_are_recorded_is_named(tmp_path: Path) -> None:
    """With probes at every op the runs agree; with probes at unordered accesses only they differ."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{0 if level in ('weights', 'ops') else run:04x}"  # type: ignore[attr-defined]
        if level != "none":
            value = run if level == "unordered" else 0
            builder.record(
                builder.op("draw", "RandomUniform", kind="random", attrs={"unordered": "in any order"}, line=7), value
            )

    diff = ScriptedRuns(tmp_path, script, runs=3).search()
    assert (diff.code, diff.masked_by_tracing) == (1, False)
    assert [(culprit["class"], culprit["why"]) for culprit in diff.culprits] == [("unordered access", "in any order")]
    assert diff.verdict() == "RandomUniform at step 0: unordered access (train.py:7)."
    assert any("with probes at every op none" in line for line in diff.findings)


def test_differing_weights_with_agreeing_ops_are_reported_as_masked(tmp_path: Path) -> None:
    """Probes at few ops let the race occur, probes at every op do not."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        fine = level in ("ops", "unordered")
        builder.weights = "00" if fine else f"{run:04x}"  # type: ignore[attr-defined]
        if level != "none":
            kind = level.rstrip("s")
            builder.record(builder.op(kind, kind, kind=kind), 0 if fine else run)

    diff = ScriptedRuns(tmp_path, script, runs=3).search()
    assert (diff.masked_by_tracing, diff.culprits) == (True, [])
    assert diff.verdict().startswith(
        "Your program differs, the probes hide it; the recorded graphs leave no order open"
    )


def test_differing_final_weights_are_searched_in_more_runs(tmp_path: Path) -> None:
    """The first two runs agree in the recorded window and end differently; the third shows the op."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{run:04x}"  # type: ignore[attr-defined]
        if level in ("weights", "layers"):
            builder.record(builder.op(level, level, kind=level.rstrip("s")), run)
        elif level == "ops":
            builder.record(builder.op("draw", "RandomUniform", kind="random"), run > 7)

    search = ScriptedRuns(tmp_path, script, runs=4)
    diff = search.search()
    # Runs until two differ; then all runs that record values agree.
    assert [level for level, _ in search.asked].count("ops") == 3 + 4
    assert (diff.masked_by_tracing, [culprit["op_type"] for culprit in diff.culprits]) == (False, ["RandomUniform"])


def test_a_race_in_varying_steps_is_searched_in_all_steps(tmp_path: Path) -> None:
    """The step of the first difference varies from run to run."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        if level == "unordered":
            raise NothingRecordedError("no graph", "")
        builder.weights = f"{run:04x}"  # type: ignore[attr-defined]
        key = builder.op(level, level, kind=level.rstrip("s")) if level in ("weights", "layers") else builder.op("race")
        for step in range(*(builder.steps or (0, 9))):  # type: ignore[attr-defined]
            builder.record(key, run if step >= (7 if level == "ops" else 3) else 0, step)

    search = ScriptedRuns(tmp_path, script, runs=3)
    diff = search.search()
    assert [steps for level, steps in search.asked if level == "ops"][:8] == [[3, 4]] * 3 + [[0, 4]] * 3 + [None] * 2
    assert not diff.masked_by_tracing
    assert [(culprit["op_name"], culprit["step"]) for culprit in diff.culprits] == [("race", 7)]


def test_a_program_without_weights_is_searched_at_its_ops(tmp_path: Path) -> None:
    """The coarse levels have no records, which is no error."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = None  # type: ignore[attr-defined]
        if level == "ops":
            builder.record(builder.op("draw", "RandomUniform", kind="random"), run)

    search = ScriptedRuns(tmp_path, script, runs=3)
    diff = search.search()
    assert (diff.code, [culprit["op_type"] for culprit in diff.culprits]) == (1, ["RandomUniform"])
    assert [level for level, _ in search.asked] == ["none", "weights", "weights", "ops", "ops", "none", "ops", "ops"]


def test_another_source_does_not_mask_the_order_of_a_set(tmp_path: Path) -> None:
    """PYTHONHASHSEED=0 removes the culprit, and something else still differs."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{run:04x}"  # type: ignore[attr-defined]
        if level == "weights":
            builder.record(builder.op("weight", "weight", kind="weight"), run)
        elif level == "ops":
            builder.record(builder.op("words", "Placeholder", kind="feed"), environment.get("PYTHONHASHSEED", run))
            builder.record(builder.op("noise", "PyFunc", kind="feed"), run)

    diff = ScriptedRuns(tmp_path, script).search()
    assert (diff.culprits[0]["op_name"], diff.culprits[0]["source"]) == ("words", "python-set-order")
    assert any("something else still differs" in line for line in diff.findings)


def test_progress_shows_the_time_left() -> None:
    now = [0.0]
    out = io.StringIO()
    progress = Progress(4, out=out, clock=lambda: now[0])
    for _ in range(2):
        progress.begin_run("run")
        now[0] += 20
        progress.end_run()
    assert progress.seconds_left() == 40
    assert out.getvalue() == "[1/4] run\n[2/4] run, about 60 s left\n"


def run_environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3", **changes}


def start_locate(python: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [str(python), "-m", "tfdeterminism.trace", "locate", *arguments]
    return subprocess.Popen(command, env=run_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_locate(code: int, python: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """Run `locate --json` to this exit code; return (its parsed output, its progress)."""
    search = start_locate(python, "--json", *arguments)
    stdout, progress = search.communicate()
    assert search.returncode == code, progress
    return json.loads(stdout), progress


@weekly.on_day(3)
@pytest.mark.tensorflow
def test_a_race_is_found_replayed_and_explained(tf_python: Callable[[str], Path]) -> None:
    """TensorFlow 2.0 has no enable_op_determinism."""
    options = ("--trace-only", "--max-runs", "12")
    output, progress = run_locate(1, tf_python("tf2.0"), *options, "--", str(PROGRAMS / "crop_race.py"))
    culprit = output["culprits"][0]
    assert (culprit["op_type"], culprit["forward_op"]) == ("CropAndResizeGradImage", "CropAndResize")
    assert "tf.image.crop_and_resize" in dict(culprit["snippet"])[culprit["line"]]
    assert (culprit["source"], culprit["solution"]) == ("crop-and-resize-backprop", "ED")
    assert output["replay"]["times"] == 30
    assert output["replay"]["distinct"] > 1
    assert re.search(r"\[2/\d+\] run 2, digests of weights, about \d+ (s|min) left", progress)


ENDLESS = {
    "tf2.0": """
import numpy as np
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(4,))])
model.compile("adam", "mse")
model.fit(np.ones((64, 4), "f"), np.ones((64, 3), "f"), epochs=10**6, verbose=0, batch_size=8)
""",
    "torch2.13": """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
while True:
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
""",
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("environment", ENDLESS)
def test_a_run_ends_after_the_given_number_of_steps(
    environment: str, tf_python: Callable[[str], Path], torch_python: Path, tmp_path: Path
) -> None:
    program, out = tmp_path / "endless.py", tmp_path / "trace"
    program.write_text(ENDLESS[environment])
    python = torch_python if environment.startswith("torch") else tf_python(environment)
    command = [python, "-m", "tfdeterminism.trace", "run", "--level", "weights", "--out", out, "--", program]
    subprocess.run(command, env={**run_environment(), variables.STOP_AFTER: "5"}, check=True, timeout=300)
    assert load(str(out / "trace-0.tfdt")).end["steps"] == 5


@pytest.mark.tensorflow
def test_a_clean_program_in_real_runs(tf_python: Callable[[str], Path]) -> None:
    search = start_locate(
        tf_python("tf1.14"), "--trace-only", "--max-runs", "2", "--", str(PROGRAMS / "clean_session.py")
    )
    stdout, progress = search.communicate()
    assert search.returncode == 0, progress
    assert stdout == ("Verdict: No difference in 2 runs.\n  final weights: bit-identical to those of an untraced run\n")


@pytest.mark.tensorflow
def test_a_failing_program_is_reported(tf_python: Callable[[str], Path], tmp_path: Path) -> None:
    failing = tmp_path / "train.py"
    failing.write_text("import tensorflow as tf\nraise SystemExit('no data')\n")
    search = start_locate(tf_python("tf2.21"), "--", str(failing))
    stdout, complaint = search.communicate()
    assert (search.returncode, stdout) == (3, "")
    assert "the program ended with exit code 1 in run 1" in complaint
    assert "| no data" in complaint
    assert complaint.rstrip().splitlines()[-1].startswith("  make it run without the tool first")


def test_an_interrupted_search_leaves_no_process_and_no_trace(tmp_path: Path) -> None:
    """After Ctrl-C the program and the traces are gone; no TensorFlow is needed."""
    slow = tmp_path / "train.py"
    slow.write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "tfdeterminism.trace", "locate", "--", str(slow)]
    search = subprocess.Popen(command, env=run_environment(TMPDIR=str(tmp_path)), stderr=subprocess.PIPE, text=True,
                              start_new_session=True)  # fmt: skip
    while not any("begun" in log.read_text() for log in tmp_path.glob("tfdet-locate-*/output.txt")):
        assert search.poll() is None
        time.sleep(0.05)
    os.killpg(search.pid, signal.SIGINT)  # as a terminal does: the program gets it too
    _, complaint = search.communicate(timeout=60)
    assert search.returncode == 130
    assert "tfdeterminism.trace: stopped" in complaint
    assert "Traceback" not in complaint
    assert not list(tmp_path.glob("tfdet-locate-*"))


def test_wrong_usage_exits_2() -> None:
    for arguments in ([], ["--max-runs", "1", "--", "train.py"], ["--nonsense"]):
        command = [sys.executable, "-m", "tfdeterminism.trace", "locate", *arguments]
        ran = subprocess.run(command, env=run_environment(), capture_output=True, text=True)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 2)
