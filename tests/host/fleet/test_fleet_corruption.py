"""A fleet's folder with damaged files, foreign files, or an interrupted write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fleets import bare_project
from test_fleet import start_fleet
from test_fleet_hostile_files import NO_JOBS, create_folder, write_attempt

from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.fleet.clusters import Local
from tfdet.fleet.collect import records
from tfdet.fleet.folder import FleetFolder
from tfdet.fleet.progress import compute_progress


@pytest.fixture
def folder(tmp_path: Path, checkout: Project) -> FleetFolder:
    """A fleet's folder with three tasks, of which the first is done.

    ended/0-1.json: the end of attempt 1 at task 0.  rounds/0000.json and .ids: the first submission and its job IDs.
    """
    fleet_folder = create_folder(tmp_path / "fleet", checkout, "tf2.0", "tf2.0", "tf2.0")
    fleet_folder.record_submission(fleet_folder.add_submission([0]), ["7"])
    write_attempt(fleet_folder, "0-1", b"", code=0)
    return fleet_folder


@pytest.mark.parametrize("name", ["rounds/0000.json", "rounds/0000.ids", "ended/0-1.json"])
@pytest.mark.parametrize("remaining", ["", "{", "[1]", "null", '{"name": "x"}', "\x00" * 20])
def test_a_damaged_file_is_named(folder: FleetFolder, name: str, remaining: str) -> None:
    (folder.path / name).write_text(remaining)
    with pytest.raises(DataError, match=name) as caught:
        compute_progress(folder, Local(folder).jobs_in_flight())
    assert "Move the file away" in caught.value.advice
    (folder.path / name).unlink()
    assert compute_progress(folder, Local(folder).jobs_in_flight()).ready[-2:] == [1, 2]


def test_every_error_has_advice_that_mends_it(tmp_path: Path) -> None:
    project, path = bare_project(tmp_path / "p", sources=1, cases=1), tmp_path / "f"
    plan = ["run", "bare1.0", "--device", "cpu", "--cluster", "local", "--repeats", "2", "--folder", str(path)]
    assert start_fleet(project, *plan).wait(timeout=120) == 0
    (broken,) = path.glob("ended/*.json")
    broken.write_text(broken.read_text()[:20])
    for words in (["status", str(path)], ["cancel", str(path)], ["run", "--resume", "--folder", str(path)]):
        process = start_fleet(project, *words)
        output = "".join(process.communicate(timeout=120))
        assert (process.returncode, broken.name in output, "Traceback" in output) == (ExitCode.USAGE, True, False), (
            output
        )
    broken.unlink()
    process = start_fleet(project, "run", "--resume", "--folder", str(path))
    assert "1 of 1 tasks done" in process.communicate(timeout=120)[1]


def test_foreign_files_stay_unchanged(folder: FleetFolder, record_line: Callable[..., bytes]) -> None:
    for kind in ("begun", "ended", "rounds", "records"):
        for name in ("zzz.json", "0-1 (copy).json.json", "x-1.json", ".nfs0001", "0000.json~", "9-1"):
            (folder.path / kind / name).write_text("{")
    (folder.path / "ended" / "1-2-half.json.123.part").write_text("{")
    progress = compute_progress(folder, NO_JOBS)
    assert (progress.done, progress.ready, len(folder.submissions())) == ({0}, [1, 2], 1)
    assert records(folder) == []


def test_tasks_that_are_not_in_the_plan_are_ignored(folder: FleetFolder, record_line: Callable[..., bytes]) -> None:
    write_attempt(folder, "999-1", record_line(), code=0)
    progress = compute_progress(folder, NO_JOBS)
    assert (progress.done, progress.complete, records(folder)) == ({0}, False, [])
    for number in (1, 2):
        write_attempt(folder, f"{number}-1", b"", code=0)
    progress = compute_progress(folder, NO_JOBS)
    assert (progress.as_json()["done"], progress.as_json()["tasks"], progress.complete) == (3, 3, True)


def test_the_number_of_a_removed_round_is_not_reused(folder: FleetFolder) -> None:
    """A round is one submission of jobs. They may still run, and are identified by its name."""
    first, second = folder.add_submission([1]), folder.add_submission([2])
    (folder.path / "rounds" / "0001.json").unlink()
    assert len({first.name, second.name, folder.add_submission([1]).name}) == 3
    folder.record_submission(second, ["8"])
    (folder.path / "rounds" / "0002.json").unlink()
    (folder.path / "rounds" / "0003.json").unlink()
    third = folder.add_submission([1])
    assert folder.job_ids(third) is None, "it was not sent"


def test_job_ids_of_slurm_are_no_local_processes(folder: FleetFolder) -> None:
    folder.record_submission(folder.submissions()[0], ["12_[3]"])
    assert Local(folder).jobs_in_flight().all == set()


def test_a_plan_that_was_cut_short_is_reported(folder: FleetFolder) -> None:
    """The submitter was killed after it made the folders and before it wrote the plan."""
    plan = folder.fleet
    with pytest.raises(UsageError) as caught:
        folder.make(plan)
    assert "--resume" in caught.value.advice
    (folder.path / "fleet.json").unlink()
    with pytest.raises(UsageError) as caught:
        folder.make(plan)
    assert "aborted" in caught.value.advice


def test_a_plan_for_an_unknown_cluster_is_refused(folder: FleetFolder) -> None:
    content = json.loads((folder.path / "fleet.json").read_text())
    (folder.path / "fleet.json").write_text(json.dumps({**content, "cluster": "pbs"}))
    with pytest.raises(DataError, match=r"fleet\.json: not a plan of this version"):
        _ = FleetFolder(folder.path).fleet
