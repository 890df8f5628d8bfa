"""Plan and folder of a fleet (runs of the suite on a cluster); tasks that fail, are killed, or are not watched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fleets import bare_project, environ

from tfdet.base.errors import DataError, UsageError
from tfdet.base.paths import Project, cache_dir
from tfdet.fleet import collect
from tfdet.fleet.clusters import JobsInFlight, requested_minutes
from tfdet.fleet.folder import AttemptEnd, AttemptStart, Fleet, FleetFolder
from tfdet.fleet.progress import MAX_FAILURES, MAX_KILLS, compute_progress
from tfdet.fleet.tasks import FleetOptions, Task, partition_sources, plan_tasks
from tfdet.matrix.load import load_matrix
from tfdet.store.durations import UNKNOWN_SECONDS, Durations, collect_durations
from tfdet.store.records import read_records


def test_sources_are_divided_evenly_into_tasks() -> None:
    groups = partition_sources({"a": 49.0, "b": 30.0, "c": 20.0, "d": 1.0}, 51)
    assert sorted(groups) == [(["a", "d"], 50.0), (["b", "c"], 50.0)]
    assert sorted(partition_sources({"a": 500.0, "b": 1.0}, 10)) == [(["a"], 500.0), (["b"], 1.0)], (
        "no source is torn apart"
    )
    assert partition_sources({}, 10) == []


def test_no_fleet_is_created_through_a_link_to_nothing(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    plan = Fleet(name="x", root=str(tmp_path), cluster="local", options=FleetOptions(device="cpu"), tasks=[])
    with pytest.raises(DataError, match="link: a symbolic link to nothing"):
        FleetFolder(link).make(plan)
    assert list(tmp_path.iterdir()) == [link]


def test_every_cell_is_planned_once_with_its_control_in_the_same_task(checkout: Project) -> None:
    matrix = load_matrix(checkout.matrix)
    planned = plan_tasks(matrix, ["tf2.0", "tf2.21"], [], FleetOptions(device="cpu"), Durations({}, {}, {}), 3600)
    for key in ("tf2.0", "tf2.21"):
        planned_sources = [source for task in planned if task.environment == key for source in task.sources]
        assert len(planned_sources) == len(set(planned_sources)) > 20
    assert [task.seconds for task in planned] == sorted((task.seconds for task in planned), reverse=True)


def test_the_length_of_a_task_follows_measured_times(
    checkout: Project, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"".join(record_line(case=case, duration_seconds=8.0, repeats=10) for case in ("a", "b")))
    durations = collect_durations([file], load_matrix(checkout.matrix).devices)
    assert durations.expected_seconds("tf2.0", "cpu", "bias-add-backprop", "none", 20) == pytest.approx(2 * 8.0 * 2)
    assert durations.expected_seconds("tf2.21", "cpu", "bias-add-backprop", "TDO", 10) == pytest.approx(16.0), (
        "as elsewhere"
    )
    assert durations.expected_seconds("tf2.21", "cpu", "reduce-sum", "none", 10) == pytest.approx(16.0), (
        "as others there"
    )
    assert durations.expected_seconds("tf2.0", "gpu", "bias-add-backprop", "none", 20) == UNKNOWN_SECONDS


@pytest.fixture
def folder(tmp_path: Path, checkout: Project) -> FleetFolder:
    """A fleet's folder with two tasks, none of which has begun."""
    fleet_folder = FleetFolder(tmp_path / "fleet")
    tasks = [Task(environment="tf2.0", sources=["bias-add-backprop"], seconds=100.0)] * 2
    fleet_folder.make(
        Fleet(
            schema=1,
            name="tfdet-x",
            root=str(checkout.root),
            cluster="local",
            options=FleetOptions(device="cpu"),
            tasks=tasks,
        )
    )
    return fleet_folder


def write_attempt(
    folder: FleetFolder, name: str, lines: bytes = b"", code: int | None = None, node: str = "n1"
) -> None:
    """Write the files of one attempt at a task: its start, its journal, and its end if it has an exit code.

    name: TASK-ATTEMPT; 0-1 is an attempt at task 0.
    """
    folder.record_start(name, AttemptStart(node=node, started=0.0))
    folder.journal(name).write_bytes(lines)
    if code is not None:
        folder.record_end(name, AttemptEnd(code=code, node=node, seconds=50.0))


def test_an_existing_fleet_folder_is_refused(folder: FleetFolder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already contains a fleet"):
        folder.make(folder.fleet)
    with pytest.raises(UsageError, match="no fleet"):
        _ = FleetFolder(tmp_path / "nothing").fleet
    (folder.path / "fleet.json").write_text("{}")
    with pytest.raises(DataError, match="not a plan of this version"):
        _ = FleetFolder(folder.path).fleet


def test_finished_records_of_killed_attempts_are_collected_once(
    folder: FleetFolder, record_line: Callable[..., bytes]
) -> None:
    first, second, third = record_line(case="a-eager"), record_line(case="b-eager"), record_line(case="c-eager")
    crashed = record_line("crashed", case="b-eager")
    write_attempt(folder, "0-1", first + crashed + third[:40])  # killed while it wrote
    write_attempt(folder, "0-2", first + second, code=130)
    write_attempt(folder, "0-3", first + second + third, code=0)
    write_attempt(folder, "1-1", record_line("crashed", case="d-eager"), code=3)
    collected = [(record.case, record.observation) for record in collect.records(folder)]
    assert sorted(collected) == [
        ("a-eager", "equal"),
        ("b-eager", "equal"),
        ("c-eager", "equal"),
        ("d-eager", "crashed"),
    ]


def test_a_journal_with_an_invalid_line_is_not_collected(
    folder: FleetFolder, record_line: Callable[..., bytes]
) -> None:
    write_attempt(folder, "0-1", record_line() + record_line(case="b-eager").replace(b"equal", b"differs"), code=0)
    with pytest.raises(DataError, match=r"0-1\.jsonl:2: its checksum does not fit"):
        collect.records(folder)


def test_states_of_tasks_follow_from_their_attempts(folder: FleetFolder) -> None:
    nobody = JobsInFlight(frozenset(), frozenset())
    assert compute_progress(folder, nobody).ready == [0, 1]
    write_attempt(folder, "0-1", code=1)  # contradicted: it ran
    write_attempt(folder, "1-1")
    progress = compute_progress(folder, JobsInFlight(frozenset(), frozenset({1})))
    assert (progress.done, progress.ready, progress.complete) == ({0}, [], False)
    assert progress.seconds_left == pytest.approx(50.0), "the first took half of what was expected"
    for number in range(MAX_FAILURES):
        assert compute_progress(folder, nobody).ready == [1]
        write_attempt(folder, f"1-2{number}", code=3, node=f"n{number}")
    progress = compute_progress(folder, nobody)
    assert progress.complete and list(progress.given_up) == [1]
    assert progress.failed_on[1] == ("n0", "n1", "n2")


def test_a_task_that_is_always_killed_is_given_up(folder: FleetFolder) -> None:
    for number in range(MAX_KILLS):
        write_attempt(folder, f"0-{number:02}", code=None if number % 2 else 130)
    assert "killed" in compute_progress(folder, None).given_up[0]


def test_a_task_that_was_too_long_gets_more_time() -> None:
    assert [requested_minutes(1200, attempts) for attempts in range(3)] == [60, 120, 240]
    assert requested_minutes(1, 0) == 10


def start_fleet(project: Project, *words: str) -> subprocess.Popen[str]:
    """Start `tfdet fleet`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tfdet", "fleet", *words], env={**os.environ, **environ(project)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def test_tasks_and_submitters_are_killed_and_no_record_is_lost_or_doubled(tmp_path: Path) -> None:
    project, folder = bare_project(tmp_path / "p", sources=3, cases=4, seconds=0.2), tmp_path / "f"
    plan = ["bare1.0", "--device", "cpu", "--cluster", "local", "--task-minutes", "0.001", "--repeats", "2"]
    submitter = start_fleet(project, "run", *plan, "--folder", str(folder))
    journal = _wait_for(lambda: next((p for p in folder.glob("records/0-*.jsonl") if b"\n" in p.read_bytes()), None))
    os.killpg(submitter.pid, signal.SIGKILL)  # and the task with it
    submitter.communicate()
    journal_bytes = journal.read_bytes()
    status = json.loads(start_fleet(project, "status", str(folder), "--json").communicate()[0])
    assert (status["tasks"], status["done"], status["running"]) == (3, 0, 0)
    _, output = start_fleet(project, "run", "--resume", "--folder", str(folder)).communicate(timeout=120)
    assert "3 of 3 tasks done" in output
    (file,) = project.evidence.glob("cpu/*.jsonl")
    records = list(read_records(file))
    # Each case once under the control, none, and once under AGAIN0, the only solution of bare_project.
    assert Counter(record.key for record in records) == Counter(
        {("bare1.0", "cpu", f"bare-{s}", f"bare-{s}-{n}-host", key): 1
         for s in range(3) for n in range(4) for key in ("none", "AGAIN0")}
    )  # fmt: skip
    complete_lines = journal_bytes[: journal_bytes.rfind(b"\n") + 1]
    assert all(line in file.read_bytes().splitlines() for line in complete_lines.splitlines())
    second = start_fleet(project, "cancel", str(folder)).communicate(timeout=60)[1]
    assert "0 records added, 0 replaced, 24 duplicates" in second


def test_ctrl_c_ends_local_tasks_without_a_traceback(tmp_path: Path) -> None:
    project, folder = bare_project(tmp_path / "p", sources=1, cases=4, seconds=0.5), tmp_path / "f"
    plan = ["bare1.0", "--device", "cpu", "--cluster", "local", "--repeats", "2", "--folder", str(folder)]
    submitter = start_fleet(project, "run", *plan)
    _wait_for(lambda: next((p for p in folder.glob("records/0-*.jsonl") if b"\n" in p.read_bytes()), None))
    os.killpg(submitter.pid, signal.SIGINT)  # as a terminal does
    output = "".join(submitter.communicate(timeout=60))
    assert submitter.returncode == 130 and "Traceback" not in output, output
    end_marker = _wait_for(lambda: next(folder.glob("ended/*.json"), None))
    assert json.loads(end_marker.read_text())["code"] == 130


def test_an_environment_is_made_once_for_all_that_see_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two tasks makes it, or this host does for machines without network."""
    for number, options in enumerate([[], ["--build-environments"]]):
        project, folder = bare_project(tmp_path / f"p{number}", sources=2, cases=1), tmp_path / f"f{number}"
        monkeypatch.setenv("UV_CACHE_DIR", os.environ.get("UV_CACHE_DIR", str(cache_dir().parent / "uv")))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{number}"))
        plan = [
            "bare1.0",
            "--device",
            "cpu",
            "--cluster",
            "local",
            "--task-minutes",
            "0.001",
            "--max-parallel",
            "2",
            *options,
        ]
        _, output = start_fleet(project, "run", *plan, "--folder", str(folder)).communicate(timeout=120)
        assert "4 records added" in output, output
        logs = "".join(path.read_text() for path in folder.glob("logs/*.err"))
        assert (logs.count("building the environment"), output.count("building the environment")) == (
            1 - number,
            number,
        )


def _wait_for(find: Callable[[], Path | None], seconds: float = 60) -> Path:
    """Wait until `find` returns a path, at most `seconds`; return the path."""
    end = time.monotonic() + seconds
    while (path := find()) is None:
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return path
