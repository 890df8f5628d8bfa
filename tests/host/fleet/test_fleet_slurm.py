"""Requests to Slurm and its answers, with scripts in place of its commands (tests/e2e has a real Slurm)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.errors import RunFailedError, UsageError
from tfdet.base.paths import Project
from tfdet.fleet.clusters import MAX_ARRAY_SIZE, JobsInFlight, ResourceRequest, Slurm
from tfdet.fleet.folder import AttemptEnd, AttemptStart, Fleet, FleetFolder
from tfdet.fleet.tasks import FleetOptions, Task
from tfdet.fleet.watch import watch

SBATCH = """#!/bin/sh
[ -e "$FAKE_SLURM/refuses" ] && { echo "sbatch: error: no such partition" >&2; exit 1; }
grep -q -- --exclude "$1" && [ -e "$FAKE_SLURM/refuses-exclude" ] && { echo "no node left" >&2; exit 1; }
cat "$1" >>"$FAKE_SLURM/scripts"
echo Submitted batch job 7
"""
SQUEUE = '#!/bin/sh\n[ -e "$FAKE_SLURM/silent" ] && exit 1\ncat "$FAKE_SLURM/queue" 2>/dev/null || true\n'
SCANCEL = '#!/bin/sh\necho "$@" >>"$FAKE_SLURM/ended"\n'


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put scripts for Slurm's commands first on PATH; return the folder of their files:

    queue has what squeue prints, scripts what sbatch got, ended what scancel got.  If they exist, refuses and
    refuses-exclude make sbatch fail, and silent makes squeue fail.
    """
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL), ("srun", "#!/bin/sh\n")):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(tmp_path))
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path, checkout: Project) -> FleetFolder:
    """A fleet's folder with three tasks on an H100."""
    fleet = FleetFolder(tmp_path / "fleet")
    how = FleetOptions(device="gpu", gpu="h100", memory=4096)
    tasks = [Task(environment="tf2.0", sources=["reduce-sum"], seconds=1200.0)] * 3
    fleet.make(Fleet(schema=1, name="tfdet-x", root=str(checkout.root), cluster="slurm", options=how, tasks=tasks,
                     sbatch_options={"partition": "gpu"}, max_parallel=2))  # fmt: skip
    return fleet


def set_queue(fake_slurm: Path, *rows: str) -> None:
    """Set the rows that squeue prints."""
    (fake_slurm / "queue").write_text("".join(f"{row}\n" for row in rows))


def test_a_submission_is_a_job_array_with_the_resources_of_its_tasks(fake_slurm: Path, folder: FleetFolder) -> None:
    submission = folder.add_submission([0, 2])
    assert Slurm(folder).submit(submission, ResourceRequest(60, ("n1", "n2"))) == ["7_0", "7_1"]
    script = (fake_slurm / "scripts").read_text()
    # The memory is the fleet's 4096 MB and 2048 MB for the suite itself.
    for option in ("array=0-1%2", "gres=gpu:h100:1", "mem=6144MB", "time=60", "partition=gpu", "exclude=n1,n2",
                   "job-name=tfdet-x-0000", "requeue"):  # fmt: skip
        assert f"#SBATCH --{option}\n" in script.replace("'", ""), option
    assert "srun" not in script


def test_the_output_of_squeue_is_parsed(fake_slurm: Path, folder: FleetFolder) -> None:
    cluster = Slurm(folder)
    folder.record_submission(folder.add_submission([2, 0]), ["7_0", "7_1"])
    folder.record_submission(folder.add_submission([1]), ["8"])
    set_queue(fake_slurm, "7_0|tfdet-x-0000|0|RUNNING|None", "7_1|tfdet-x-0000|1|PENDING|Resources",
          "8|tfdet-x-0001|N/A|COMPLETING|None", "9|another|N/A|RUNNING|None")  # fmt: skip
    flying = cluster.jobs_in_flight()
    assert flying == JobsInFlight(running=frozenset({2}), waiting=frozenset({0}), waiting_reason="Resources")
    assert not (fake_slurm / "ended").exists()


def test_unrecorded_and_held_jobs_are_cancelled(fake_slurm: Path, folder: FleetFolder) -> None:
    """A submitter was killed after sbatch, or a node failed to start a job, which Slurm then holds."""
    folder.add_submission([0])
    folder.record_submission(folder.add_submission([1, 2]), ["8_0", "8_1"])
    set_queue(fake_slurm, "7|tfdet-x-0000|N/A|PENDING|Priority",
          "8_0|tfdet-x-0001|0|PENDING|launch failed requeued held", "8_1|tfdet-x-0001|1|RUNNING|None")  # fmt: skip
    flying = Slurm(folder).jobs_in_flight()
    assert flying is not None and flying.all == {0, 2}
    assert not (fake_slurm / "ended").exists(), "who only looks ends nothing: it may be on its way"
    Slurm(folder).cancel_orphans()
    assert (fake_slurm / "ended").read_text().split() == ["7", "8_0"]


def test_without_an_answer_of_squeue_the_jobs_are_unknown(fake_slurm: Path, folder: FleetFolder) -> None:
    (fake_slurm / "silent").touch()
    assert Slurm(folder).jobs_in_flight() is None


def test_a_rejected_submission_is_reported_at_once(fake_slurm: Path, folder: FleetFolder) -> None:
    (fake_slurm / "refuses").touch()
    with pytest.raises(RunFailedError, match="no such partition"):
        watch(folder, Slurm(folder), lambda progress: None, 0.01)


def test_a_failed_task_excludes_its_node_unless_no_other_is_left(fake_slurm: Path, folder: FleetFolder) -> None:
    for task in (1, 2):
        folder.record_end(f"{task}-1", AttemptEnd(code=0, node="n1", seconds=1.0))
    folder.record_start("0-1", AttemptStart(node="n1", started=0.0))
    folder.record_end("0-1", AttemptEnd(code=3, node="n1", seconds=1.0))
    (fake_slurm / "refuses-exclude").touch()

    def done_when_sent(progress: object) -> None:
        if (fake_slurm / "scripts").exists():
            folder.record_end("0-2", AttemptEnd(code=0, node="n1", seconds=1.0))

    assert watch(folder, Slurm(folder), done_when_sent, 0.01).complete
    script = (fake_slurm / "scripts").read_text()
    assert "--exclude" not in script and "time=120" in script.replace("'", "")


def test_no_array_is_larger_than_slurm_allows(
    fake_slurm: Path, folder: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdet.fleet.watch.MAX_ARRAY_SIZE", 2)

    def done_when_sent(progress: object) -> None:
        for task in range(3) if folder.submissions() else ():
            folder.record_end(f"{task}-1", AttemptEnd(code=0, node="n1", seconds=1.0))

    watch(folder, Slurm(folder), done_when_sent, 0.01)
    assert [len(submission.tasks) for submission in folder.submissions()[:2]] == [2, 1]
    assert MAX_ARRAY_SIZE <= 1000, "an array may have 1001 where nobody raised MaxArraySize"


def test_one_process_watches_and_a_cancelled_fleet_submits_nothing(fake_slurm: Path, folder: FleetFolder) -> None:
    def look_twice(progress: object) -> None:
        with pytest.raises(UsageError, match="another tfdet already watches"):
            watch(folder, Slurm(folder), lambda progress: None, 0.01)
        folder.cancel(True)

    assert not watch(folder, Slurm(folder), look_twice, 0.01).complete
    assert not (fake_slurm / "scripts").exists()


def test_why_tasks_wait_is_reported_where_none_runs(fake_slurm: Path, folder: FleetFolder) -> None:
    """For example, a drained node waits for its operator."""
    folder.record_submission(folder.add_submission([0, 1]), ["7_0", "7_1"])
    drained = "7_0|tfdet-x-0000|0|PENDING|Nodes required for job are DOWN, DRAINED or reserved"
    set_queue(fake_slurm, drained)
    assert "1 waiting (Nodes required for job are DOWN, DRAINED or reserved)" in printed_status(folder)
    set_queue(fake_slurm, drained, "7_1|tfdet-x-0000|1|RUNNING|None")
    assert "1 running, 1 waiting" in printed_status(folder) and "DRAINED" not in printed_status(folder)


def printed_status(folder: FleetFolder) -> str:
    """Return what `tfdet fleet status` prints."""
    command = [sys.executable, "-m", "tfdet", "fleet", "status", str(folder.path)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
