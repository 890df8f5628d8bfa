"""`tfdet fleet` on a real Slurm whose daemons die: the same evidence as of one machine."""

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
    """Skipped by name where there is none, but where CI requires it."""
    why = _why_not()
    if why:
        if os.environ.get("TFDET_REQUIRE_SLURM"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _why_not() -> str | None:
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"no Slurm here ({', '.join(missing)}): apt-get install slurmctld slurmd slurm-client"
    return None if os.getuid() == 0 else "slurmd runs jobs as root only"


def tfdet(environ: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tfdet", *words], env=environ | {"TFDET_ROOT": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def finished(process: subprocess.Popen[str], cluster: Slurm | None = None) -> str:
    """What it said.  cluster: its operator is at work meanwhile."""
    end = time.monotonic() + 300
    while True:
        try:
            said, _ = process.communicate(timeout=2)
            break
        except subprocess.TimeoutExpired:
            if cluster is not None:
                cluster.resume_drained()
            if time.monotonic() > end:
                process.kill()
                said, _ = process.communicate()
                pytest.fail("\n".join([said, "it did not end", cluster.told() if cluster else ""]))
    assert process.returncode == 0, said
    return said


def fleet_run(slurm: Slurm, folder: Path, *more: str) -> subprocess.Popen[str]:
    return tfdet(slurm.environ, "fleet", "run", "--folder", str(folder), "--poll-interval", "0.5", *more)


@pytest.mark.tensorflow
@pytest.mark.parametrize("device", weekly.todays([*SELECTION]))
def test_killed_daemons_change_no_evidence(slurm: Slurm, tmp_path: Path, device: str) -> None:
    sources = [word for source in SELECTION[device] for word in ("--source", source)]
    alone, together, folder = tmp_path / "alone.jsonl", tmp_path / "together.jsonl", tmp_path / "fleet"
    finished(tfdet(dict(os.environ), "run", "tf2.0", "--device", device, *sources, *QUICK, "--out", str(alone)))
    plan = ["tf2.0", "--device", device, "--cluster", "slurm", "--task-minutes", "0.001", *sources, *QUICK]
    submitter = fleet_run(slurm, folder, *plan, "--out", str(together))
    wait_for(lambda: any(folder.glob("begun/*.json")), "first task", 60)
    slurm.kill_node("n1")
    slurm.kill("slurmctld")
    os.kill(submitter.pid, signal.SIGKILL)
    slurm.bring_up("slurmctld")
    slurm.bring_up("n1")
    said = finished(fleet_run(slurm, folder, "--resume", "--out", str(together)), slurm)
    assert f"{len(SELECTION[device])} of {len(SELECTION[device])} tasks done" in said
    assert cells(alone) == cells(together)
    assert set(cells(together).values()) == {1}, "a case is there twice"
    assert verdicts(alone) == verdicts(together), ended_badly(together)


def cells(path: Path) -> Counter[tuple[str, ...]]:
    return Counter(found.key for found in read_records(path))


def ended_badly(path: Path) -> list[tuple[str, object]]:
    return [(found.case, found.error) for found in read_records(path) if found.error]


def verdicts(path: Path) -> dict[tuple[str, ...], str]:
    status = load_status(Project(ROOT), [path], store=False)
    return {tuple(found.key): str(found.cell.verdict) for found in status.cells if found.cell.runs}
