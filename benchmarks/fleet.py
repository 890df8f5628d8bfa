"""Many machines: python benchmarks/fleet.py plan | merge | overhead | kills

plan: 10,000 tasks.  merge: 1,000,000 records that they left.  Both without a cluster.
overhead: 100 tasks over a real Slurm of two nodes on this machine.  kills: 30 of each daemon and of who watches.
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
    """100 environments of 100 sources, a task each; what cells take is read from this project's own evidence."""
    project = bare_project(folder / "p", sources=100, cases=1)
    there = project.matrix / "environments" / "bare"
    for number in range(1, round(100 * scale)):
        (there / f"bare1.{number}.toml").write_text((there / "bare1.0.toml").read_text("utf-8"), "utf-8")
    start = _cpu(), time.monotonic()
    matrix = load_matrix(project.matrix)
    durations = collect_durations(EvidenceStore.open(Project(ROOT)).files(), matrix.devices)
    found = plan_tasks(matrix, matrix.environments, [], FleetOptions(device="cpu"), durations, 0.001)
    made = FleetFolder(folder / "f")
    made.make(_fleet(project, found))
    seen = compute_progress(made, None)
    _tell(f"plan of {len(seen.tasks)} tasks, written and looked at", start)


def merge(folder: Path, scale: float) -> None:
    project = bare_project(folder / "p", sources=100, cases=1)
    there, many = project.matrix / "environments" / "bare", round(100 * scale)
    for number in range(1, many):
        (there / f"bare1.{number}.toml").write_text((there / "bare1.0.toml").read_text("utf-8"), "utf-8")
    made, each = FleetFolder(folder / "f"), RECORDS // TASKS
    made.make(_fleet(project, [Task(environment=f"bare1.{n // 100}", sources=[f"bare-{n % 100}"], seconds=1.0)
                               for n in range(100 * many)]))  # fmt: skip
    for number, task in enumerate(made.fleet.tasks):
        _left(made, number, task, each)
    start = _cpu(), time.monotonic()
    added = ingest_into_store(made)
    _tell(f"merge of {added.ingested} records of {100 * many} tasks", start)
    assert added.ingested == 100 * many * each
    assert ingest_into_store(made).duplicates == added.ingested, "the second time nothing is new"


def _left(made: FleetFolder, number: int, task: Task, each: int) -> None:
    """What a task leaves: records of as many machines as it takes."""
    lines = []
    base = make_record(environment=task.environment, framework={"name": "bare", "version": "0.0"}, mode="host",
                       source=task.sources[0], case=f"{task.sources[0]}-0-host")  # fmt: skip
    for machine in range(each):
        record = base | {"machine": f"{machine:012x}"}
        lines.append(journal.dump(record | {"checksum": journal.checksum(record)}) + "\n")
    made.record_start(f"{number}-1", AttemptStart(node="n", started=0.0))
    made.journal(f"{number}-1").write_text("".join(lines), "utf-8")
    made.record_end(f"{number}-1", AttemptEnd(code=0, node="n", seconds=1.0))


def _fleet(project: Project, some: list[Task]) -> Fleet:
    return Fleet(
        schema=1,
        name="tfdet-b",
        root=str(project.root),
        cluster="local",
        options=FleetOptions(device="cpu"),
        tasks=some,
    )


def overhead(folder: Path, scale: float) -> None:
    """Against what the tasks themselves took, each on one of two nodes."""
    number = round(100 * scale)
    with Cluster(folder) as cluster:
        project = bare_project(folder / "p", sources=number, cases=10, seconds=0.25)
        cluster.warm(project)
        start = time.monotonic()
        cluster.finish(cluster.run(project, folder / "f", *PLAN))
        took = time.monotonic() - start
    attempts = sorted(_attempts(FleetFolder(folder / "f")))
    own = sum(end - begin for _, begin, end in attempts)
    between = [one[1] - before[2] for before, one in pairwise(attempts) if one[0] == before[0]]
    print(f"{len(attempts)} tasks: {took:.0f} s on two nodes, {own:.0f} s of the tasks' own: {2 * took / own - 1:+.1%}")
    print(f"from a task's end to the next one's begin on its node: {median(between):.1f} s ({sum(between) / own:.1%})")


def _attempts(folder: FleetFolder) -> Iterator[tuple[str, float, float]]:
    """(node, begin, end) of each."""
    for path in (folder.path / "begun").iterdir():
        begun = AttemptStart.model_validate_json(path.read_bytes())
        ended = AttemptEnd.model_validate_json((folder.path / "ended" / path.name).read_bytes())
        yield begun.node, begun.started, begun.started + ended.seconds


def kills(folder: Path, scale: float) -> None:
    number, rounds = round(40 * scale), round(30 * scale)
    with Cluster(folder) as cluster:
        project = bare_project(folder / "p", sources=number, cases=10, seconds=0.25)
        cluster.warm(project)
        watcher = cluster.run(project, folder / "f", *PLAN)
        wait_for(lambda: any((folder / "f").glob("begun/*")), "first task", 60)
        killed: Counter[str] = Counter()
        for what in random.sample(["slurmctld", "n1", "n2", "watcher"] * rounds, 4 * rounds):
            time.sleep(random.uniform(0, 4))
            watcher = cluster.kill(what, watcher, project, folder / "f")
            killed[what] += 1
            if watcher.poll() is not None:
                break
        cluster.finish(watcher)
    found = Counter(r.key for file in project.evidence.glob("*/*.jsonl") for r in read_records(file))
    wanted = number * 10 * 2
    doubled = sum(times - 1 for times in found.values())
    print(
        f"killed {dict(killed)}: {len(found)} of {wanted} cells, {wanted - len(found)} lost, {doubled} doubled, 0 torn"
    )


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

    def run(self, project: Project, folder: Path, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tfdet", "fleet", "run", "--folder", str(folder), "--poll-interval", "1", *words],
            env=self._slurm.environ | environ(project), text=True, start_new_session=True,
        )  # fmt: skip

    def warm(self, project: Project) -> None:
        """The environment is made once, whatever is measured."""
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

    def kill(self, what: str, watcher: subprocess.Popen[str], project: Project, folder: Path) -> subprocess.Popen[str]:
        """And bring it up again; who watches now."""
        if what == "watcher":
            os.kill(watcher.pid, signal.SIGKILL)
            watcher.wait()
            return self.run(project, folder, "--resume")
        (self._slurm.kill if what == "slurmctld" else self._slurm.kill_node)(what)
        time.sleep(random.uniform(0, 2))
        self._slurm.bring_up(what)
        return watcher


def _cpu() -> float:
    """Seconds, of this process and of those that it waited for."""
    some = os.times()
    return some.user + some.system + some.children_user + some.children_system


def _tell(what: str, start: tuple[float, float]) -> None:
    cpu, wall = start
    print(f"{what}: {time.monotonic() - wall:.1f} s ({_cpu() - cpu:.1f} s of CPU)")


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
