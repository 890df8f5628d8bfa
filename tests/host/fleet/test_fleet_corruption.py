"""A fleet's folder with damaged files, foreign files, or an interrupted write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fleets import bare_project
from test_fleet import fleet
from test_fleet_hostile_files import NOBODY, attempt, create_folder

from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.fleet.clusters import Local
from tfdet.fleet.collect import records
from tfdet.fleet.folder import FleetFolder
from tfdet.fleet.progress import compute_progress


@pytest.fixture
def folder(tmp_path: Path, checkout: Project) -> FleetFolder:
    """A fleet's folder with three tasks, of which the first is done."""
    fleet_folder = create_folder(tmp_path / "fleet", checkout, "tf2.0", "tf2.0", "tf2.0")
    fleet_folder.record_submission(fleet_folder.add_submission([0]), ["7"])
    attempt(fleet_folder, "0-1", b"", code=0)
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


def test_every_command_ends_with_advice_and_goes_on_once_it_was_followed(tmp_path: Path) -> None:
    project, path = bare_project(tmp_path / "p", sources=1, cases=1), tmp_path / "f"
    plan = ["run", "bare1.0", "--device", "cpu", "--cluster", "local", "--repeats", "2", "--folder", str(path)]
    assert fleet(project, *plan).wait(timeout=120) == 0
    (broken,) = path.glob("ended/*.json")
    broken.write_text(broken.read_text()[:20])
    for words in (["status", str(path)], ["cancel", str(path)], ["run", "--resume", "--folder", str(path)]):
        process = fleet(project, *words)
        output = "".join(process.communicate(timeout=120))
        assert (process.returncode, broken.name in output, "Traceback" in output) == (ExitCode.USAGE, True, False), (
            output
        )
    broken.unlink()
    process = fleet(project, "run", "--resume", "--folder", str(path))
    assert "1 of 1 tasks done" in process.communicate(timeout=120)[1]


def test_what_is_somebody_elses_is_left_alone(folder: FleetFolder, record_line: Callable[..., bytes]) -> None:
    for kind in ("begun", "ended", "rounds", "records"):
        for name in ("zzz.json", "0-1 (copy).json.json", "x-1.json", ".nfs0001", "0000.json~", "9-1"):
            (folder.path / kind / name).write_text("{")
    (folder.path / "ended" / "1-2-half.json.123.part").write_text("{")
    progress = compute_progress(folder, NOBODY)
    assert (progress.done, progress.ready, len(folder.submissions())) == ({0}, [1, 2], 1)
    assert records(folder) == []


def test_tasks_that_are_not_in_the_plan_count_for_nothing(
    folder: FleetFolder, record_line: Callable[..., bytes]
) -> None:
    attempt(folder, "999-1", record_line(), code=0)
    progress = compute_progress(folder, NOBODY)
    assert (progress.done, progress.complete, records(folder)) == ({0}, False, [])
    for number in (1, 2):
        attempt(folder, f"{number}-1", b"", code=0)
    progress = compute_progress(folder, NOBODY)
    assert (progress.as_json()["done"], progress.as_json()["tasks"], progress.complete) == (3, 3, True)


def test_a_round_that_was_moved_away_gives_its_number_to_none(folder: FleetFolder) -> None:
    """Its jobs may still run, and they are identified by its name."""
    first, second = folder.add_submission([1]), folder.add_submission([2])
    (folder.path / "rounds" / "0001.json").unlink()
    assert len({first.name, second.name, folder.add_submission([1]).name}) == 3
    folder.record_submission(second, ["8"])
    (folder.path / "rounds" / "0002.json").unlink()
    (folder.path / "rounds" / "0003.json").unlink()
    third = folder.add_submission([1])
    assert folder.job_ids(third) is None, "it was not sent"


def test_jobs_that_are_no_processes_are_none_of_this_host(folder: FleetFolder) -> None:
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


def test_a_plan_for_no_cluster_that_there_is_is_refused(folder: FleetFolder) -> None:
    content = json.loads((folder.path / "fleet.json").read_text())
    (folder.path / "fleet.json").write_text(json.dumps({**content, "cluster": "pbs"}))
    with pytest.raises(DataError, match=r"fleet\.json: not a plan of this version"):
        _ = FleetFolder(folder.path).fleet
