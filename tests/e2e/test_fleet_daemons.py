"""`tfdet fleet` on a real Slurm whose daemons die: the evidence is the same as from one machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import weekly
from e2e_project import ROOT
from slurm import NEEDED, Slurm, wait_for

from tfdet.base.paths import Project
from tfdet.store.records import read_records
from tfdet.verdicts.status_loading import load_status

SELECTION = {"cpu": ["reduce-sum", "segment-sum"], "vgpu": ["segment-sum"]}
QUICK = ["--solution", "TDO", "--repeats", "2", "--processes", "1"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yield a running cluster; skip the tests if there is no Slurm, unless CI requires it."""
    reason = _skip_reason()
    if reason:
        if os.environ.get("TFDET_REQUIRE_SLURM"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _skip_reason() -> str | None:
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"no Slurm here ({', '.join(missing)}): apt-get install slurmctld slurmd slurm-client"
    return None if os.getuid() == 0 else "slurmd runs jobs as root only"


def start_tfdet(environ: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start `tfdet` with these environment variables on the checkout."""
    return subprocess.Popen(
        [sys.executable, "-m", "tfdet", *arguments], env=environ | {"TFDET_ROOT": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def wait_for_output(process: subprocess.Popen[str], cluster: Slurm | None = None) -> str:
    """Wait for the command and return its output; with a cluster, resume its drained nodes meanwhile."""
    end = time.monotonic() + 300
    while True:
        try:
            output, _ = process.communicate(timeout=2)
            break
        except subprocess.TimeoutExpired:
            if cluster is not None:
                cluster.resume_drained()
            if time.monotonic() > end:
                process.kill()
                output, _ = process.communicate()
                pytest.fail("\n".join([output, "it did not end", cluster.describe_state() if cluster else ""]))
    assert process.returncode == 0, output
    return output


def fleet_run(slurm: Slurm, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start `tfdet fleet run` on the cluster."""
    return start_tfdet(slurm.environ, "fleet", "run", "--folder", str(folder), "--poll-interval", "0.5", *arguments)


@pytest.mark.tensorflow
@pytest.mark.parametrize("device", weekly.select_for_today([*SELECTION]))
def test_killed_daemons_change_no_evidence(slurm: Slurm, tmp_path: Path, device: str) -> None:
    sources = [argument for source in SELECTION[device] for argument in ("--source", source)]
    local_records, fleet_records, folder = tmp_path / "alone.jsonl", tmp_path / "together.jsonl", tmp_path / "fleet"
    wait_for_output(
        start_tfdet(dict(os.environ), "run", "tf2.0", "--device", device, *sources, *QUICK, "--out", str(local_records))
    )
    plan = ["tf2.0", "--device", device, "--cluster", "slurm", "--task-minutes", "0.001", *sources, *QUICK]
    submitter = fleet_run(slurm, folder, *plan, "--out", str(fleet_records))
    wait_for(lambda: any(folder.glob("begun/*.json")), "first task", 60)
    slurm.kill_node("n1")
    slurm.kill("slurmctld")
    os.kill(submitter.pid, signal.SIGKILL)
    slurm.start_node("slurmctld")
    slurm.start_node("n1")
    output = wait_for_output(fleet_run(slurm, folder, "--resume", "--out", str(fleet_records)), slurm)
    assert f"{len(SELECTION[device])} of {len(SELECTION[device])} tasks done" in output
    assert record_counts(local_records) == record_counts(fleet_records)
    assert set(record_counts(fleet_records).values()) == {1}, "a case is there twice"
    assert verdicts(local_records) == verdicts(fleet_records), list_errors(fleet_records)


def record_counts(path: Path) -> Counter[tuple[str, ...]]:
    """Return how many records each cell has."""
    return Counter(record.key for record in read_records(path))


def list_errors(path: Path) -> list[tuple[str, object]]:
    """Return (case, error) of each record with an error."""
    return [(record.case, record.error) for record in read_records(path) if record.error]


def verdicts(path: Path) -> dict[tuple[str, ...], str]:
    """Return {cell: verdict} from these records alone."""
    status = load_status(Project(ROOT), [path], read_store=False)
    return {
        tuple(status_cell.key): str(status_cell.inferred.verdict)
        for status_cell in status.cells
        if status_cell.inferred.runs
    }
