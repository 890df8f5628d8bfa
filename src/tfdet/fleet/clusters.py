"""Where tasks are sent: Slurm, or processes of this host; both by way of submitit."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from tfdet.base.errors import RunFailedError, UsageError
from tfdet.fleet import task
from tfdet.fleet.folder import Folder, Round, Sent

MOST = 1000  # of one array: Slurm's MaxArraySize is 1001 where nobody raised it
_SHORTEST = 10  # minutes
_MARGIN = 3  # times what a task is expected to take: machines differ, and an environment may have to be made first
_GONE = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
         "PREEMPTED", "TIMEOUT")  # fmt: skip


@dataclass(frozen=True)
class Want:
    """What tasks that are sent together ask for.  not_on: machines on which they failed."""

    minutes: int
    not_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flying:
    """Tasks that were sent and did not end yet.  why: most of them wait for this, in the cluster's words."""

    waiting: frozenset[int]
    running: frozenset[int]
    why: str = ""

    @property
    def all(self) -> frozenset[int]:
        return self.waiting | self.running


class Cluster(Protocol):
    pause: float  # seconds between two looks at it

    def send(self, made: Round, want: Want) -> list[str]:
        """Its names of the jobs.  RunFailedError where it takes none."""
        ...

    def room(self, flying: Flying) -> int:
        """How many more tasks may be sent."""
        ...

    def flying(self) -> Flying | None:
        """None: it does not answer."""
        ...

    def tidy(self) -> None:
        """End what nobody will come back to.  For the one who sends: what is being sent looks like that, too."""
        ...

    def cancel(self) -> None:
        """End all that was sent.  RunFailedError where it does not answer."""
        ...

    def leave(self) -> None:
        """Who watches goes by Ctrl-C."""
        ...


def find(name: str, folder: Folder) -> Cluster:
    return Slurm(folder) if name == "slurm" else Local(folder)


def default() -> Sent:
    return "slurm" if shutil.which("sbatch") else "local"


def minutes(seconds: float, attempts: int) -> int:
    """What to ask for: more after each attempt, whose time may have been too short."""
    return max(_SHORTEST, round(_MARGIN * seconds / 60) << min(attempts, 4))


class _Job(NamedTuple):
    """name: of its round.  reason: why it waits."""

    job: str
    name: str
    task: int
    state: str
    reason: str


class Slurm:
    """Job arrays, found again by their names: whoever sent them may be dead."""

    pause = 10.0

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        if shutil.which("squeue") is None:
            raise UsageError(
                "Slurm is not installed on this machine", "Run this where sbatch is, or pass --cluster local."
            )

    def room(self, flying: Flying) -> int:
        return 1_000_000

    def send(self, made: Round, want: Want) -> list[str]:
        fleet = self._folder.fleet
        more = {**fleet.wants, **({"exclude": ",".join(want.not_on)} if want.not_on else {})}
        kind = f"gpu:{fleet.how.gpu}:1" if fleet.how.gpu else "gpu:1"
        gpu = {"slurm_gres": kind} if fleet.how.device == "gpu" else {}
        return _sent(
            self._folder, "slurm", made, name=made.name, timeout_min=want.minutes,
            slurm_mem=f"{fleet.how.mebibytes}MB", slurm_array_parallelism=fleet.max_parallel or MOST,
            slurm_use_srun=False, slurm_additional_parameters={"requeue": True, **more}, **gpu,
        )  # fmt: skip

    def flying(self) -> Flying | None:
        jobs = self._jobs()
        if jobs is None:
            return None
        there = [one for one in jobs if one.state not in _GONE and "held" not in one.reason]
        waiting = [one for one in there if one.state != "RUNNING"]
        reasons = Counter(one.reason for one in waiting if one.reason != "None").most_common(1)
        return Flying(
            frozenset(one.task for one in waiting),
            frozenset(one.task for one in there if one.state == "RUNNING"),
            reasons[0][0] if reasons else "",
        )

    def tidy(self) -> None:
        """Jobs whose sender did not live to note them, and those that Slurm holds since a node failed to start them."""
        sent = {made.name for made in self._folder.rounds() if self._folder.ids(made) is not None}
        self._end([one.job for one in self._jobs() or [] if one.name not in sent or "held" in one.reason])

    def cancel(self) -> None:
        self._end([one.job for one in self._jobs() or []])
        if self._jobs() is None:
            raise RunFailedError("Slurm does not respond; its jobs keep running", "Run tfdet fleet cancel again later.")

    def leave(self) -> None:
        """What was sent stays in its queue."""

    def _jobs(self) -> list[_Job] | None:
        """All of this fleet that the cluster knows."""
        done = _call("squeue", "--me", "--noheader", "--array", "--format=%i|%j|%K|%T|%r")
        if done is None:
            return None
        rounds = {made.name: made for made in self._folder.rounds()}
        found = []
        for job, name, place, state, reason in (line.split("|", 4) for line in done.splitlines()):
            if name in rounds:
                task = rounds[name].tasks[int(place) if place.isdigit() else 0]
                found.append(_Job(job, name, task, state, reason))
        return found

    def _end(self, jobs: list[str]) -> None:
        for start in range(0, len(jobs), MOST):
            _call("scancel", *jobs[start : start + MOST])


def _call(*command: str) -> str | None:
    """What it says; None where it fails, as while no controller answers."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


class Local:
    """Processes of this host, one after another, or as many as are wanted."""

    pause = 0.5

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def room(self, flying: Flying) -> int:
        return (self._folder.fleet.max_parallel or 1) - len(flying.all)

    def send(self, made: Round, want: Want) -> list[str]:
        os.environ[task.SENDERS_GPUS] = os.environ.get(task.GPUS, task.ALL)  # submitit shows its processes none
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all of Ctrl-C: we end them in order
        try:
            return _sent(self._folder, "local", made, timeout_min=want.minutes)
        finally:
            signal.signal(signal.SIGINT, before)

    def flying(self) -> Flying:
        return Flying(frozenset(), frozenset(task for _, task in self._alive()))

    def tidy(self) -> None:
        """Who sends processes notes them at once."""

    def cancel(self) -> None:
        for process, _ in self._alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def leave(self) -> None:
        self.cancel()

    def _alive(self) -> Iterator[tuple[int, int]]:
        for made in self._folder.rounds():
            for job, number in zip(self._folder.ids(made) or [], made.tasks, strict=False):
                if job.isdecimal() and self._is_ours(int(job)):
                    yield int(job), number

    def _is_ours(self, process: int) -> bool:
        """Its number may be another's by now."""
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return str(self._folder.path / "logs").encode() in words


def _sent(folder: Folder, cluster: str, made: Round, **wants: object) -> list[str]:
    import submitit
    from submitit.core.utils import UncompletedJobError

    executor = submitit.AutoExecutor(folder=folder.path / "logs", cluster=cluster)
    try:
        executor.update_parameters(**wants)
        jobs = executor.map_array(task.run, [str(folder.path)] * len(made.tasks), made.tasks)
    except (UncompletedJobError, subprocess.SubprocessError, RuntimeError, OSError) as error:
        said = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise RunFailedError(
            f"{cluster} accepted no job: {said.strip()}", "Check that it responds, then run with --resume."
        ) from error
    return [job.job_id for job in jobs]
