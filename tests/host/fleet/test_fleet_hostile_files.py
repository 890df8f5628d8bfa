"""Fleets of equal names, damaged journals, tasks that never begin, and cancelling during submission.

A fleet is a run of the suite on many machines, in tasks; each attempt at a task writes its records into a journal.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.base.errors import DataError, RunFailedError, UsageError
from tfdet.base.paths import Project
from tfdet.fleet import task as tasks
from tfdet.fleet.clusters import JobsInFlight, Local, ResourceRequest, Slurm
from tfdet.fleet.collect import ingest_into_store, records
from tfdet.fleet.folder import AttemptEnd, AttemptStart, Fleet, FleetFolder
from tfdet.fleet.progress import MAX_KILLS, compute_progress
from tfdet.fleet.tasks import FleetOptions, Task
from tfdet.fleet.watch import watch
from tfdet.store.evidence import EvidenceStore

NO_JOBS = JobsInFlight(frozenset(), frozenset())


def create_folder(path: Path, checkout: Project, *environments: str) -> FleetFolder:
    """Create a fleet's folder with one task for each environment; return it."""
    folder = FleetFolder(path)
    one_task_each = [
        Task(environment=key, sources=["bias-add-backprop"], seconds=100.0) for key in environments or ["tf2.0"]
    ]
    folder.make(Fleet(schema=1, name=folder.job_name, root=str(checkout.root), cluster="slurm",
                      options=FleetOptions(device="cpu"), tasks=one_task_each))  # fmt: skip
    return folder


@pytest.fixture
def folder(tmp_path: Path, checkout: Project) -> FleetFolder:
    """A fleet's folder with one task."""
    return create_folder(tmp_path / "fleet", checkout)


def write_attempt(folder: FleetFolder, name: str, lines: bytes, code: int | None = None) -> None:
    """Write the files of one attempt at a task: its start, its journal, and its end if it has an exit code.

    name: TASK-ATTEMPT; 0-1 is an attempt at task 0.
    """
    folder.record_start(name, AttemptStart(node="n1", started=0.0))
    folder.journal(name).write_bytes(lines)
    if code is not None:
        folder.record_end(name, AttemptEnd(code=code, node="n1", seconds=50.0))


def test_folders_of_equal_name_are_different_fleets(tmp_path: Path, checkout: Project) -> None:
    """Jobs are found by name, so equal names would cancel another fleet's jobs."""
    names = {create_folder(tmp_path / parent / "my fl%A|t\n'x", checkout).fleet.name for parent in ("here", "there")}
    assert len(names) == 2
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzA0123456789-.") for name in names), names


def test_of_two_concurrent_plans_for_a_folder_one_is_refused(tmp_path: Path, checkout: Project) -> None:
    together, outcomes = threading.Barrier(8), []

    def make() -> None:
        together.wait()
        try:
            create_folder(tmp_path / "fleet", checkout)
            outcomes.append("made")
        except UsageError:
            outcomes.append("refused")

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made"] + 7 * ["refused"]


def test_a_fleet_folder_is_writable_by_its_owner_only(tmp_path: Path, checkout: Project) -> None:
    """Tasks are started from files in logs/, and the files in records/ are signed."""
    before = os.umask(0)
    try:
        folder = create_folder(tmp_path / "fleet", checkout)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) & 0o022 for path in folder.path.iterdir() if path.is_dir()} == {0}


def test_a_binary_tail_of_a_journal_is_ignored(folder: FleetFolder, record_line: Callable[..., bytes]) -> None:
    """A node that loses power can leave such bytes."""
    write_attempt(folder, "0-1", record_line() + b"{\xff\x00")
    assert len(records(folder)) == 1
    write_attempt(folder, "0-2", record_line(case="b-eager") + b"\xff\x00\n")
    with pytest.raises(DataError, match=r"0-2\.jsonl"):
        records(folder)


def test_a_damaged_line_does_not_stop_the_next_attempt(
    folder: FleetFolder, record_line: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_attempt(folder, "0-1", record_line() + record_line(case="b-eager").replace(b"equal", b"differs"))

    class Engine:
        def run(self, request: object) -> int:
            return 0

    monkeypatch.setattr(tasks, "engine_for", lambda *_: Engine())
    monkeypatch.setattr(tasks, "_interrupt_on_signals", lambda: None)
    assert tasks.run(str(folder.path), 0) == 0
    (last,) = set(folder.started_attempts()[0]) - {"0-1"}
    assert folder.journal(last).read_bytes() == record_line()


def test_a_crash_record_of_a_killed_suite_is_ignored(folder: FleetFolder, record_line: Callable[..., bytes]) -> None:
    """The exit code is the signal's, so the case need not be the cause."""
    write_attempt(folder, "0-1", record_line() + record_line("crashed", case="b-eager"), code=-9)
    assert [record.case for record in records(folder)] == [record.case for record in records(folder, {0: ["0-1"]})]
    assert {record.observation for record in records(folder)} == {"equal"}


def test_records_of_another_task_are_refused(folder: FleetFolder, record_line: Callable[..., bytes]) -> None:
    """Otherwise anyone with write access could have records signed."""
    write_attempt(folder, "0-1", record_line(environment="tf2.21"), code=0)
    with pytest.raises(DataError, match=r"bias-add-backprop in tf2.21 is not of its task"):
        records(folder)


def test_a_damaged_journal_blocks_only_its_environment(
    tmp_path: Path, copy: Project, record_line: Callable[..., bytes]
) -> None:
    folder = create_folder(tmp_path / "fleet", copy, "tf1.15", "tf2.0")
    write_attempt(folder, "0-1", record_line(environment="tf1.15").replace(b"equal", b"differs"), code=0)
    write_attempt(folder, "1-1", record_line(), code=0)
    with pytest.raises(DataError, match=r"0-1.jsonl:1: its checksum"):
        ingest_into_store(folder)
    assert sum(len(path.read_bytes().splitlines()) for path in EvidenceStore.open(copy).files()) >= 1
    assert record_line() in b"".join(path.read_bytes() for path in EvidenceStore.open(copy).files())


def test_a_task_that_never_starts_is_given_up(folder: FleetFolder) -> None:
    """Without Python or the folder on a node, the task would be resubmitted without end."""
    for _ in range(MAX_KILLS):
        assert compute_progress(folder, NO_JOBS).ready == [0]
        folder.record_submission(folder.add_submission([0]), ["7"])
    assert "none of which started" in compute_progress(folder, NO_JOBS).given_up[0]


def test_a_preempted_task_with_new_records_is_not_given_up(
    folder: FleetFolder, record_line: Callable[..., bytes]
) -> None:
    """The cluster preempts its machines every few minutes."""
    previous = b""
    for number in range(MAX_KILLS + 5):
        previous += record_line(case=f"c{number}-eager")
        write_attempt(folder, f"0-{number:02}", previous, code=130)
    assert compute_progress(folder, NO_JOBS).ready == [0]
    for number in range(MAX_KILLS):
        assert compute_progress(folder, NO_JOBS).ready == [0]
        write_attempt(folder, f"0-9{number:02}", previous)
    assert "killed" in compute_progress(folder, NO_JOBS).given_up[0]


def test_rejected_submissions_do_not_count_as_attempts(folder: FleetFolder) -> None:
    for _ in range(MAX_KILLS + 1):
        folder.add_submission([0])
    assert compute_progress(folder, NO_JOBS).ready == [0]


class Cancelled(Slurm):
    """A submitter that another process cancels while it submits."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder, self.cancel_calls = folder, 0

    def cancel_orphans(self) -> None:
        pass

    def jobs_in_flight(self) -> JobsInFlight:
        return NO_JOBS

    def submit(self, submission: object, request: ResourceRequest) -> list[str]:
        self.folder.cancel(True)
        return ["7"]

    def cancel(self) -> None:
        self.cancel_calls += 1


def test_jobs_submitted_during_cancellation_are_cancelled(
    tmp_path: Path, checkout: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = create_folder(tmp_path / "fleet", checkout, "tf2.0", "tf2.0")
    monkeypatch.setattr("tfdet.fleet.watch.MAX_ARRAY_SIZE", 1)
    cluster = Cancelled(folder)
    assert not watch(folder, cluster, lambda progress: None, 0.01).complete
    assert cluster.cancel_calls == 1, "its jobs stayed in the queue"
    assert len(folder.submissions()) == 1, "it went on sending"


def test_cancelling_without_a_responding_controller_is_an_error(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdet.fleet.clusters.shutil.which", lambda _: "there")
    monkeypatch.setattr("tfdet.fleet.clusters._run_command", lambda *_: None)
    with pytest.raises(RunFailedError, match="does not respond"):
        Slurm(folder).cancel()


@pytest.mark.parametrize("senders", [None, "1,2", ""])
def test_a_local_task_sees_the_gpus_of_the_submitter(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch, senders: str | None
) -> None:
    """submitit sets CUDA_VISIBLE_DEVICES to an empty value if no number of GPUs is given."""
    monkeypatch.delenv(tasks.GPUS, raising=False)
    monkeypatch.setenv(tasks.SUBMITTER_GPUS, "")  # put back afterwards
    if senders is not None:
        monkeypatch.setenv(tasks.GPUS, senders)
    monkeypatch.setattr("tfdet.fleet.clusters._submit", lambda *_, **__: [])
    Local(folder).submit(folder.add_submission([0]), ResourceRequest(10))
    monkeypatch.setenv(tasks.GPUS, "")
    visible: list[str | None] = []

    class Engine:
        def run(self, request: object) -> int:
            visible.append(os.environ.get(tasks.GPUS))
            return 0

    monkeypatch.setattr(tasks, "engine_for", lambda *_: Engine())
    monkeypatch.setattr(tasks, "_interrupt_on_signals", lambda: None)
    tasks.run(str(folder.path), 0)
    assert visible == [senders]
