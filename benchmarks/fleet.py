"""Scale and robustness of `tfdet fleet`: python benchmarks/fleet.py plan | merge | overhead | kills

plan: time to plan 10,000 tasks.  merge: time to merge their 1,000,000 records.  Both without a cluster.
overhead: that of 100 tasks over a real Slurm of two nodes on this machine.
The tasks' environments have no framework: those of bare_project run Python functions that sleep (tests/e2e).
kills: no record is lost when each daemon and the watching process are killed 30 times.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "host"), str(ROOT / "tests" / "e2e")]

from fleets import bare_project, environ  # noqa: E402
from records import make_record  # noqa: E402
from slurm import Slurm, wait_for  # noqa: E402

from tfdet.base.paths import Project  # noqa: E402
from tfdet.fleet.collect import ingest_into_store  # noqa: E402
from tfdet.fleet.folder import AttemptEnd, AttemptStart, Fleet, FleetFolder  # noqa: E402
from tfdet.fleet.progress import compute_progress  # noqa: E402
from tfdet.fleet.tasks import FleetOptions, Task, plan_tasks  # noqa: E402
from tfdet.matrix.load import load_matrix  # noqa: E402
from tfdet.store.durations import collect_durations  # noqa: E402
from tfdet.store.evidence import EvidenceStore  # noqa: E402
from tfdet.store.records import read_records  # noqa: E402
from tfdet_common import journal  # noqa: E402

TASKS, RECORDS = 10_000, 1_000_000


def plan(folder: Path, scale: float) -> None:
    """Plan 100 environments of 100 sources, one task each, with the durations of this project's own evidence."""
    project = bare_project(folder / "p", sources=100, cases=1)
    environments = project.matrix / "environments" / "bare"
    for number in range(1, round(100 * scale)):
        (environments / f"bare1.{number}.toml").write_text((environments / "bare1.0.toml").read_text("utf-8"), "utf-8")
    start = _cpu(), time.monotonic()
    matrix = load_matrix(project.matrix)
    durations = collect_durations(EvidenceStore.open(Project(ROOT)).files(), matrix.devices)
    tasks = plan_tasks(matrix, matrix.environments, [], FleetOptions(device="cpu"), durations, 0.001)
    fleet_folder = FleetFolder(folder / "f")
    fleet_folder.make(_fleet(project, tasks))
    progress = compute_progress(fleet_folder, None)
    _print_times(f"plan of {len(progress.tasks)} tasks, written and looked at", start)


def merge(folder: Path, scale: float) -> None:
    project = bare_project(folder / "p", sources=100, cases=1)
    environments, environment_count = project.matrix / "environments" / "bare", round(100 * scale)
    for number in range(1, environment_count):
        (environments / f"bare1.{number}.toml").write_text((environments / "bare1.0.toml").read_text("utf-8"), "utf-8")
    fleet_folder, records_per_task = FleetFolder(folder / "f"), RECORDS // TASKS
    tasks = [
        Task(environment=f"bare1.{number // 100}", sources=[f"bare-{number % 100}"], seconds=1.0)
        for number in range(100 * environment_count)
    ]
    fleet_folder.make(_fleet(project, tasks))
    for number, task in enumerate(fleet_folder.fleet.tasks):
        _write_attempt(fleet_folder, number, task, records_per_task)
    start = _cpu(), time.monotonic()
    result = ingest_into_store(fleet_folder)
    _print_times(f"merge of {result.ingested} records of {100 * environment_count} tasks", start)
    assert result.ingested == 100 * environment_count * records_per_task
    assert ingest_into_store(fleet_folder).duplicates == result.ingested, "the second time nothing is new"


def _write_attempt(fleet_folder: FleetFolder, number: int, task: Task, record_count: int) -> None:
    """Write the files of a finished task, with a record for each of `record_count` machines."""
    lines = []
    base = make_record(environment=task.environment, framework={"name": "bare", "version": "0.0"}, mode="host",
                       source=task.sources[0], case=f"{task.sources[0]}-0-host")  # fmt: skip
    for machine in range(record_count):
        record = base | {"machine": f"{machine:012x}"}
        lines.append(journal.dump(record | {"checksum": journal.checksum(record)}) + "\n")
    # NUMBER-1 is the first attempt of a task.
    fleet_folder.record_start(f"{number}-1", AttemptStart(node="n", started=0.0))
    fleet_folder.journal(f"{number}-1").write_text("".join(lines), "utf-8")
    fleet_folder.record_end(f"{number}-1", AttemptEnd(code=0, node="n", seconds=1.0))


def _fleet(project: Project, tasks: list[Task]) -> Fleet:
    return Fleet(
        schema=1,
        name="tfdet-b",
        root=str(project.root),
        cluster="local",
        options=FleetOptions(device="cpu"),
        tasks=tasks,
    )


def overhead(folder: Path, scale: float) -> None:
    """Print the overhead of the fleet over the tasks' own time, on two nodes."""
    task_count = round(100 * scale)
    with Cluster(folder) as cluster:
        project = bare_project(folder / "p", sources=task_count, cases=10, seconds=0.25)
        cluster.warm(project)
        start = time.monotonic()
        cluster.finish(cluster.run(project, folder / "f", *PLAN))
        seconds = time.monotonic() - start
    attempts = sorted(_attempts(FleetFolder(folder / "f")))
    task_seconds = sum(end - begin for _, begin, end in attempts)
    gaps = [after[1] - before[2] for before, after in pairwise(attempts) if after[0] == before[0]]
    share = 2 * seconds / task_seconds - 1
    print(f"{len(attempts)} tasks: {seconds:.0f} s on two nodes, {task_seconds:.0f} s of the tasks' own: {share:+.1%}")
    print(
        f"from a task's end to the next one's begin on its node: {median(gaps):.1f} s ({sum(gaps) / task_seconds:.1%})"
    )


def _attempts(folder: FleetFolder) -> Iterator[tuple[str, float, float]]:
    """Yield (node, start, end) of each attempt."""
    for path in (folder.path / "begun").iterdir():
        start = AttemptStart.model_validate_json(path.read_bytes())
        end = AttemptEnd.model_validate_json((folder.path / "ended" / path.name).read_bytes())
        yield start.node, start.started, start.started + end.seconds


def kills(folder: Path, scale: float) -> None:
    number, rounds = round(40 * scale), round(30 * scale)
    with Cluster(folder) as cluster:
        project = bare_project(folder / "p", sources=number, cases=10, seconds=0.25)
        cluster.warm(project)
        watcher = cluster.run(project, folder / "f", *PLAN)
        wait_for(lambda: any((folder / "f").glob("begun/*")), "first task", 60)
        killed: Counter[str] = Counter()
        for target in random.sample(["slurmctld", "n1", "n2", "watcher"] * rounds, 4 * rounds):
            time.sleep(random.uniform(0, 4))
            watcher = cluster.kill(target, watcher, project, folder / "f")
            killed[target] += 1
            if watcher.poll() is not None:
                break
        cluster.finish(watcher)
    counts = Counter(record.key for file in project.evidence.glob("*/*.jsonl") for record in read_records(file))
    expected = number * 10 * 2
    duplicates = sum(count - 1 for count in counts.values())
    lost = expected - len(counts)
    print(f"killed {dict(killed)}: {len(counts)} of {expected} cells, {lost} lost, {duplicates} doubled, 0 torn")


PLAN = ("bare1.0", "--device", "cpu", "--cluster", "slurm", "--task-minutes", "0.001", "--repeats", "2")


class Cluster:
    """A real Slurm of two nodes: see tests/e2e/slurm.py."""

    def __init__(self, folder: Path) -> None:
        self._slurm = Slurm(folder / "slurm")

    def __enter__(self) -> Cluster:
        self._slurm.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._slurm.stop()

    def run(self, project: Project, folder: Path, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tfdet", "fleet", "run", "--folder", str(folder), "--poll-interval", "1",
             *arguments],
            env=self._slurm.environ | environ(project), text=True, start_new_session=True,
        )  # fmt: skip

    def warm(self, project: Project) -> None:
        """Create the environment, which is not measured."""
        command = [
            sys.executable,
            "-m",
            "tfdet",
            "run",
            "bare1.0",
            "--device",
            "cpu",
            "--source",
            "bare-0",
            "--repeats",
            "1",
        ]
        out = ["--out", str(project.root / "warm.jsonl")]
        subprocess.run([*command, *out], env=os.environ | environ(project), check=True)

    def finish(self, watcher: subprocess.Popen[str]) -> None:
        if watcher.wait() != 0:
            raise SystemExit("the fleet failed")

    def kill(
        self, target: str, watcher: subprocess.Popen[str], project: Project, folder: Path
    ) -> subprocess.Popen[str]:
        """Kill a daemon, a node or the watcher, and restart it; return the current watcher."""
        if target == "watcher":
            os.kill(watcher.pid, signal.SIGKILL)
            watcher.wait()
            return self.run(project, folder, "--resume")
        (self._slurm.kill if target == "slurmctld" else self._slurm.kill_node)(target)
        time.sleep(random.uniform(0, 2))
        self._slurm.start_node(target)
        return watcher


def _cpu() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _print_times(title: str, start: tuple[float, float]) -> None:
    cpu, wall = start
    print(f"{title}: {time.monotonic() - wall:.1f} s ({_cpu() - cpu:.1f} s of CPU)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["plan", "merge", "overhead", "kills"])
    parser.add_argument("--scale", type=float, default=1.0, help="a part of it, for a look")
    parser.add_argument("--folder", type=Path, help="for what it makes: merge takes 3 GiB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        {"plan": plan, "merge": merge, "overhead": overhead, "kills": kills}[arguments.what](
            Path(folder), arguments.scale
        )


if __name__ == "__main__":
    main()
