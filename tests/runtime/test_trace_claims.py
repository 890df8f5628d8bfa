"""`locate` claims only what was shown: hash seeds by runs, masking by alternating runs, races by replay.

The level of a run says what it records: "none" (an untraced run), "weights", "unordered" (only ops that a graph leaves
unordered), or all "ops". `builder.weights` is the digest of a run's final weights.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forks import Forks, Job
from test_trace_locate import Script, ScriptedRuns
from traces import TraceBuilder

from tfdeterminism.trace.capture import pool_tasks
from tfdeterminism.trace.capture.files import FileAccesses
from tfdeterminism.trace.capture.steps import Steps
from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff
from tfdeterminism.trace.report import text
from tfdeterminism.trace.search import hash_seeds, run_ends

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import trace_claims

INPUT_OP = {"kind": "feed", "line": 9}


def program_with_input(
    value: Callable[[int, dict[str, str]], object], equal_turns: Callable[[int], int] = lambda run: 0
) -> Script:
    """A program whose line 9 gets a value from Python; the name of the op counts how often the line ran before.

    equal_turns(run): the number of first turns in which the line gets 0 in every run.
    """

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        given = value(run, environment)
        builder.weights = f"{hash(str(given)) & 0xFFFF:04x}"  # type: ignore[attr-defined]
        if level == "weights":
            builder.record(builder.op("weight", "weight", kind="weight"), given)
        elif level == "ops":
            for turn in range(3):
                key = builder.eager(f"train.py:9#{turn}", "Python", **INPUT_OP)
                builder.record(key, given if turn >= equal_turns(run) else 0)

    return script


def test_hash_seeds_are_no_cause_if_only_a_count_in_a_name_differs(tmp_path: Path) -> None:
    """A shuffle by random numbers: which iteration differs first is random."""
    diff = ScriptedRuns(tmp_path, program_with_input(lambda run, environment: run, lambda run: run // 3 % 3)).search()
    assert diff.culprits[0]["source"] is None
    assert any("still differ" in line for line in diff.findings)
    assert not any("something else" in line or "decides" in line.split("alone")[0] for line in diff.findings)
    assert not any("sorted" in line for line in diff.culprits[0]["lines"])


def test_hash_seeds_are_the_cause_if_equal_seeds_agree_and_others_differ(tmp_path: Path) -> None:
    diff = ScriptedRuns(
        tmp_path, program_with_input(lambda run, environment: environment.get("PYTHONHASHSEED", run))
    ).search()
    assert diff.culprits[0]["source"] == "python-set-order"


def test_hash_seeds_are_no_cause_if_all_seeds_agree(tmp_path: Path) -> None:
    """PYTHONHASHSEED masks the difference without causing it, or the difference is rare."""
    diff = ScriptedRuns(tmp_path, program_with_input(lambda run, environment: 0 if environment else run)).search()
    assert diff.culprits[0]["source"] is None


@pytest.mark.parametrize(("odd", "decided"), [((), True), ((3,), False), ((4,), False), ((5,), False), ((6,), False)])
def test_hash_seeds_are_the_cause_only_if_each_run_with_a_seed_agrees(odd: tuple[int, ...], decided: bool) -> None:
    """odd: the runs that differ from others of their seed; decided: whether the seed decides the result."""
    seeds: list[str] = []

    def record(seed: str) -> str:
        seeds.append(seed)
        return f"{seed}!" if len(seeds) - 1 in odd else seed

    trial = hash_seeds.HashSeedTrial(record, lambda folders: folders[0] != folders[1])
    trial.run()
    assert (trial.decides, seeds) == (decided, ["0", "0", "1", "0", "1", "1", "0"])


def test_reordered_equal_values_do_not_make_hash_seeds_the_cause(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        for number, value in enumerate(([1, 2, 3], [2, 3, 1])[run]):
            builder.record(builder.eager(f"train.py:5#{number}", "Square", line=5), value)

    (culprit,) = compare(build).culprits
    assert (culprit["class"], culprit["source"]) == ("order only", None)


class RunsWithGivenEnds(ScriptedRuns):
    """Each run ends as ends_of_run(level, number of the run) returns: (digest of the weights, files).

    Runs of level "none" are untraced.
    """

    def __init__(self, folder: Path, ends_of_run: Callable[[str, int], Any], **options: Any) -> None:
        def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
            builder.weights, files = ends_of_run(level, run)  # type: ignore[attr-defined]
            builder.end = lambda **fields: TraceBuilder.end(builder, files=files, **fields)  # type: ignore[method-assign]
            if level != "none":
                builder.record(builder.op(level, level, kind=level.rstrip("s")), 0)

        super().__init__(folder, script, **options)


def file_entry(
    path: str, digest: str | None, changed: float = 0, is_own: bool = False, line: int = 5
) -> dict[str, Any]:
    """Return a file of the trace's list: its digest if the program read it, and the line that opened it.

    defined: the number of ops before the read; by, writes: the stacks that read it, and that wrote it first; own:
    whether this run wrote it before.
    """
    stack = [["/w/train.py", line, "<module>"]]
    return {"path": path, "reads": digest, "changed": changed, "by": stack if digest else None, "defined": 0,
            "own": is_own, "writes": None if digest else stack, "temporary": False}  # fmt: skip


def test_a_first_run_that_leaves_a_cache_is_distinguished_from_what_probes_hide(tmp_path: Path) -> None:
    result = RunsWithGivenEnds(tmp_path, lambda level, run: ("aa", [file_entry("/w/cache.npy", None)]) if run == 1 else
                   ("bb", [file_entry("/w/cache.npy", "11")])).search()  # fmt: skip
    assert (result.code, result.masked_by_tracing, result.culprits) == (1, False, [])
    assert result.verdict().startswith("Only the first of 7 runs ended otherwise")
    assert "cache.npy (train.py:5)" in result.verdict()


def test_a_differing_first_run_without_known_file_is_reported(tmp_path: Path) -> None:
    diff = RunsWithGivenEnds(tmp_path, lambda level, run: ("aa" if run == 1 else "bb", [])).search()
    assert (diff.code, diff.masked_by_tracing) == (1, False)
    assert re.match(r"Only the first of \d+ runs ended otherwise; the \d+ after it agree\.$", diff.verdict())


def test_a_rare_difference_is_not_reported_as_masked_by_tracing(tmp_path: Path) -> None:
    """One untraced run differs, which may be chance."""
    nth: dict[str, int] = {}

    def outcome_of_run(level: str, run: int) -> Any:
        nth[level] = nth.get(level, 0) + 1
        return ("aa" if level == "none" and nth["none"] == 2 else "bb"), []

    diff = RunsWithGivenEnds(tmp_path, outcome_of_run).search()
    assert (diff.code, diff.masked_by_tracing, diff.result) == (1, False, "diverged")
    assert re.search(r"1 of \d+ untraced runs ended otherwise than most, 0 of \d+ traced ones did", diff.verdict())


@pytest.mark.parametrize(
    ("untraced", "traced", "expected"),
    [
        ("ab", "aa", "1 of 2 untraced runs ended otherwise than most, 0 of 2 traced ones did"),
        ("ab", "cdc", "2 untraced runs ended in 2 ways, 3 traced ones in 2"),
        ("ab", "ab", "2 untraced runs ended in 2 ways, 2 traced ones in 2"),
    ],
)
def test_most_runs_are_more_than_half(untraced: str, traced: str, expected: str) -> None:
    ends = run_ends.RunEnds()
    for level, digests in (("none", untraced), ("ops", traced)):
        for digest in digests:
            ends.add(level, digest)
    assert ends.describe() == expected


def test_masking_by_tracing_is_reported_with_a_bound(tmp_path: Path) -> None:
    diff = RunsWithGivenEnds(tmp_path, lambda level, run: (f"{run:02x}" if level == "none" else "bb", [])).search()
    assert diff.masked_by_tracing
    assert any("5 of 5 untraced runs" in line and "0.4%" in line for line in diff.findings)


@pytest.mark.parametrize(
    ("otherwise", "total", "is_shown"), [(5, 5, True), (4, 5, True), (3, 5, False), (5, 10, True), (4, 10, False)]
)
def test_how_many_runs_show_masking(otherwise: int, total: int, is_shown: bool) -> None:
    rounds = run_ends.Rounds()
    for number in range(total):
        rounds.add(f"other {number}" if number < otherwise else "same", "same")
    assert rounds.is_significant() is is_shown


def test_a_difference_that_shows_in_turns_is_named(tmp_path: Path) -> None:
    """A difference that is rare with and without probes finally occurs in a traced run."""
    nth: dict[str, int] = {}

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        nth[level] = nth.get(level, 0) + 1
        struck = (level, nth[level]) in (("none", 2), ("ops", 8))
        builder.weights = "aa" if struck else "bb"  # type: ignore[attr-defined]
        if level != "none":
            builder.record(builder.op("draw", "RandomUniform", kind="random"), run if struck else 0)

    diff = ScriptedRuns(tmp_path, script).search()
    assert (diff.masked_by_tracing, [culprit["op_type"] for culprit in diff.culprits]) == (False, ["RandomUniform"])


@pytest.mark.parametrize(("distinct", "kind"), [(1, "unexplained"), (4, "kernel race")])
def test_a_race_is_reported_where_the_replay_differed(tmp_path: Path, distinct: int, kind: str) -> None:
    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{run:04x}"  # type: ignore[attr-defined]
        if level == "weights":
            builder.record(builder.op("weight", "weight", kind="weight"), run)
        elif level == "ops":
            builder.record(builder.op("product", "MatMul", device="/device:CPU:0"), run)
            (builder.path.parent / "capture-0.npz").write_bytes(b"")

    result = ScriptedRuns(
        tmp_path,
        script,
        runner=SimpleNamespace(fallback_calls=(), replay=lambda path, times: {"times": times, "distinct": [distinct]}),
    ).search()
    (culprit,) = result.culprits
    assert culprit["class"] == kind
    assert kind in result.verdict()
    if distinct == 1:
        assert (culprit["source"], culprit["solution"]) == (None, None)
        assert "run alone on these 30 times it gave one result" in culprit["why"]


def test_two_traces_alone_prove_no_race(
    compare: Callable[..., TraceDiff],
) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        empty = builder.eager("train.py:3#0", "aten.empty.memory_format", attrs={"uninitialized": True}, device="cpu")
        builder.record(empty, run)
        builder.record(builder.eager("train.py:4#0", "aten.add.Tensor", (empty,), device="cpu"), run)

    (culprit,) = compare(build, framework="torch", version="2.13.0").culprits
    assert culprit["class"] == "uninitialized memory"

    def race(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.op("product"), run)

    assert compare(race).culprits[0]["class"] == "unexplained"


@pytest.mark.parametrize(("device", "cuda"), [("cpu", False), ("cuda:0", True)])
def test_advice_for_cuda_is_given_on_cuda(compare: Callable[..., TraceDiff], device: str, cuda: bool) -> None:
    diff = compare(lambda builder, run: builder.record(builder.op("x", "aten.index_put_.default", device=device), run),
                   framework="torch", version="2.13.0")  # fmt: skip
    lines = diff.culprits[0]["lines"]
    assert any("CUBLAS" in line for line in lines) is cuda
    assert any("use_deterministic_algorithms" in line for line in lines)


def test_an_op_after_an_unrecorded_step_is_not_called_the_cause(tmp_path: Path) -> None:
    """Keras' fit: recording begins after the cause; recorded from the first step, the cause is named."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = f"{run:04x}"  # type: ignore[attr-defined]
        if level in ("none", "unordered"):
            return
        if level != "ops":
            key = builder.op(level, level, kind=level.rstrip("s"))
            for step in range(*(builder.steps or (0, 5))):  # type: ignore[attr-defined]
                builder.record(key, run if step > 2 else 0, step)
            return
        noise, product = builder.op("noise", "RandomUniform", kind="random"), builder.op("product")
        for step in range(*(builder.steps or (0, 5))):  # type: ignore[attr-defined]
            builder.record(noise, run if step == 1 else 0, step)
            builder.record(product, run if step > 2 else 0, step)

    (culprit,) = ScriptedRuns(tmp_path, script).search().culprits
    assert (culprit["op_type"], culprit["step"]) == ("RandomUniform", 1)


def test_steps_do_not_depend_on_the_timing_of_threads() -> None:
    """A thread's ops belong to the step in which it was started, and its gradients end no step."""
    steps = Steps(threading.RLock(), None, lambda: None)
    recording: Any = type("Recording", (), {"recorder": type("Recorder", (), {"steps": steps})})
    watched, observed = pool_tasks.PoolTasks(recording), []
    watched.open()
    try:
        for number in range(3):

            def work(late: float = 0.01 * (number % 2)) -> None:
                time.sleep(late)
                for _ in range(2):
                    steps.on_gradient()
                    steps.on_optimizer_applied()
                observed.append((steps.number, pool_tasks.thread_name()))

            threads = [threading.Thread(target=work, name=f"shard {shard}") for shard in range(3)]
            for thread in threads:
                thread.start()
            steps.on_gradient()
            steps.on_optimizer_applied()
            for thread in threads:
                thread.join()
    finally:
        watched.close()
    assert steps.number == 3
    assert sorted(observed) == [(step, f"shard {shard}") for step in range(3) for shard in range(3)]


def test_files_that_the_program_reads_and_writes_are_recorded(tmp_path: Path) -> None:
    """Only files of its own lines count, with the content of the first read."""
    program, data = tmp_path / "train.py", tmp_path / "data.bin"
    program.write_text("open('made.bin', 'wb').write(b'1')\nopen('data.bin').read()\nopen('made.bin').read()\n"
                       "open('made.bin', 'ab').write(b'2')\nopen('made.bin').read()\n"
                       "open('out/trace-0.tfdt').read()\n")  # fmt: skip
    data.write_text("first")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "trace-0.tfdt").write_text("what a parent wrote")
    files = FileAccesses(lambda: 7, str(tmp_path / "out"))
    before = os.getcwd()
    os.chdir(tmp_path)
    files.open()
    try:
        exec(compile(program.read_text(), str(program), "exec"), {})
        Path(os.devnull).read_bytes()
    finally:
        files.close()
        os.chdir(before)
    data.write_text("second")
    data.read_text()
    by_name = {Path(entry["path"]).name: entry for entry in files.as_json()}
    assert set(by_name) == {"data.bin", "made.bin"}
    assert (by_name["data.bin"]["by"][0][:2], by_name["data.bin"]["own"]) == ([str(program), 2], False)
    assert (by_name["made.bin"]["by"][0][1], by_name["made.bin"]["own"], by_name["made.bin"]["writes"][0][1]) == (
        3,
        True,
        1,
    )
    assert by_name["data.bin"]["defined"] == 7


def test_a_program_that_first_asks_for_the_temporary_folder_runs(tmp_path: Path) -> None:
    """tempfile opens files under its own lock to test folders."""
    program = tmp_path / "train.py"
    program.write_text("import tempfile\ntempfile.gettempdir()\nopen('made.bin', 'wb').write(b'1')\n")
    source = (
        "import os, sys\nfrom tfdeterminism.trace.capture.files import FileAccesses\n"
        "files = FileAccesses(lambda: 0, 'trace')\nfiles.open()\n"
        f"exec(compile(open({str(program)!r}).read(), {str(program)!r}, 'exec'), {{}})\n"
        "files.close()\nprint([one['temporary'] for one in files.as_json() if one['path'].endswith('made.bin')])\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2] / "runtime")}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[True]\n"), done.stderr


@pytest.mark.parametrize(("loaded", "line", "other", "kind"), [
    (True, 9, "22", "file"), (False, 5, "22", "file"), (False, 9, "22", "Python feed"), (True, 9, "11", "Python feed"),
])  # fmt: skip
def test_a_value_read_from_a_file_is_reported_as_such(
    tmp_path: Path, loaded: bool, line: int, other: str, kind: str
) -> None:
    """It is recognized by its value or line; a file that is equal in both runs is no cause."""
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path / f"{run}.tfdt", cwd="/w", framework="torch", version="2.13.0")
        stack = [["/w/train.py", line, "<module>"]]
        key = builder.eager("train.py:9#0", "Python", kind="feed", line=line, stack=stack,
                         attrs={"from_file": True} if loaded else {})  # fmt: skip
        builder.record(key, run)
        paths.append(str(builder.end(files=[file_entry("/w/data.npy", ("11", other)[run])])))
    (culprit,) = trace_diff.compare(paths).culprits
    assert culprit["class"] == kind
    assert ("data.npy (train.py:5)" in culprit["why"]) is (other == "22")
    assert ("begin each run from the same file" in " ".join(culprit["lines"])) is (kind == "file")


def test_invalid_file_entries_of_a_trace_are_ignored(tmp_path: Path) -> None:
    paths = []
    for run, files in enumerate(([{"path": 1}, 3, {**file_entry("/w/x", "11"), "by": [[1]]}], {"a": 1})):
        builder = TraceBuilder(tmp_path / f"{run}.tfdt")
        builder.record(builder.eager("train.py:9#0", "Python", **INPUT_OP), run)
        paths.append(str(builder.end(files=files)))
    assert trace_diff.compare(paths).culprits[0]["class"] == "Python feed"
    assert json.dumps(trace_diff.compare(paths).as_json())
    assert "Python feed" in text.diff_text(trace_diff.compare(paths))


SAMPLED_PROGRAMS = (
    "t_cached_first",
    "t_np_file",
    "t_threads_grad",
    "t_tmp_names",
)  # python benchmarks/trace_claims.py ENV for all


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SAMPLED_PROGRAMS)
def test_no_false_cause_is_named_in_programs_written_by_others(
    name: str, torch_python: Path, forks: Callable[[str], Forks]
) -> None:
    false, words = trace_claims.faults(trace_claims.FOLDER / f"{name}.py", forks("torch2.13"))
    assert false == [], words


LEFT = """
import sys, threading, numpy, torch
from tfdeterminism import trace
before = threading.Thread.start, numpy.load
for number in range(2):
    with trace.record(sys.argv[1] + str(number)):
        torch.ones(3).sum()
print((threading.Thread.start, numpy.load) == before)
"""


@pytest.mark.tensorflow
def test_the_recorder_restores_every_function(
    torch_python: Path, forks: Callable[[str], Forks], tmp_path: Path
) -> None:
    program = tmp_path / "left.py"
    program.write_text(LEFT)
    (done,) = forks("torch2.13").run([Job([str(program), str(tmp_path / "trace")])])
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
