"""Clusters that run tasks: Slurm, or processes of this host; both through submitit."""

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
from tfdet.fleet.folder import ClusterKind, FleetFolder, Submission

MAX_ARRAY_SIZE = 1000  # tasks of one job array: Slurm's MaxArraySize defaults to 1001
_MIN_MINUTES = 10
_TIME_MARGIN = 3  # times the expected time: machines differ, and an environment may have to be built first
_FINISHED_STATES = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "COMPLETING", "DEADLINE", "FAILED", "NODE_FAIL",
                    "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT")  # fmt: skip


@dataclass(frozen=True)
class ResourceRequest:
    """What tasks of one submission request. excluded_nodes: machines on which they failed."""

    minutes: int
    excluded_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobsInFlight:
    """Submitted tasks that have not ended. waiting_reason: the most common one, as the cluster words it."""

    waiting: frozenset[int]
    running: frozenset[int]
    waiting_reason: str = ""

    @property
    def all(self) -> frozenset[int]:
        return self.waiting | self.running


class Cluster(Protocol):
    poll_seconds: float  # between two queries of its queue

    def submit(self, made: Submission, want: ResourceRequest) -> list[str]:
        """Submit the tasks; return the cluster's job IDs. RunFailedError if it accepts none."""
        ...

    def free_slots(self, flying: JobsInFlight) -> int:
        """Return how many more tasks may be submitted."""
        ...

    def jobs_in_flight(self) -> JobsInFlight | None:
        """Return the tasks in the queue; None if the cluster does not respond."""
        ...

    def cancel_orphans(self) -> None:
        """Cancel jobs that no submission records. Only the submitter may: a submission under way looks alike."""
        ...

    def cancel(self) -> None:
        """Cancel all submitted jobs. RunFailedError if the cluster does not respond."""
        ...

    def detach(self) -> None:
        """Called when the watching process ends by Ctrl-C."""
        ...


def connect(name: str, folder: FleetFolder) -> Cluster:
    return Slurm(folder) if name == "slurm" else Local(folder)


def default_cluster() -> ClusterKind:
    return "slurm" if shutil.which("sbatch") else "local"


def requested_minutes(seconds: float, attempts: int) -> int:
    """Return the time limit to request: doubled after each attempt, whose limit may have been too short."""
    return max(_MIN_MINUTES, round(_TIME_MARGIN * seconds / 60) << min(attempts, 4))


class _Job(NamedTuple):
    """name: of its submission. reason: why it waits."""

    job: str
    name: str
    task: int
    state: str
    reason: str


class Slurm:
    """Job arrays, found by their names: the process that submitted them may have ended."""

    poll_seconds = 10.0

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder
        if shutil.which("squeue") is None:
            raise UsageError(
                "Slurm is not installed on this machine", "Run this where sbatch is, or pass --cluster local."
            )

    def free_slots(self, flying: JobsInFlight) -> int:
        return 1_000_000

    def submit(self, made: Submission, want: ResourceRequest) -> list[str]:
        fleet = self._folder.fleet
        more = {**fleet.sbatch_options, **({"exclude": ",".join(want.excluded_nodes)} if want.excluded_nodes else {})}
        kind = f"gpu:{fleet.options.gpu}:1" if fleet.options.gpu else "gpu:1"
        gpu = {"slurm_gres": kind} if fleet.options.device == "gpu" else {}
        return _submit(
            self._folder, "slurm", made, name=made.name, timeout_min=want.minutes,
            slurm_mem=f"{fleet.options.mebibytes}MB", slurm_array_parallelism=fleet.max_parallel or MAX_ARRAY_SIZE,
            slurm_use_srun=False, slurm_additional_parameters={"requeue": True, **more}, **gpu,
        )  # fmt: skip

    def jobs_in_flight(self) -> JobsInFlight | None:
        jobs = self._jobs()
        if jobs is None:
            return None
        there = [one for one in jobs if one.state not in _FINISHED_STATES and "held" not in one.reason]
        waiting = [one for one in there if one.state != "RUNNING"]
        reasons = Counter(one.reason for one in waiting if one.reason != "None").most_common(1)
        return JobsInFlight(
            frozenset(one.task for one in waiting),
            frozenset(one.task for one in there if one.state == "RUNNING"),
            reasons[0][0] if reasons else "",
        )

    def cancel_orphans(self) -> None:
        """Cancel jobs whose submitter died before it recorded them, and jobs that Slurm holds after a failed start."""
        sent = {made.name for made in self._folder.submissions() if self._folder.job_ids(made) is not None}
        self._end([one.job for one in self._jobs() or [] if one.name not in sent or "held" in one.reason])

    def cancel(self) -> None:
        self._end([one.job for one in self._jobs() or []])
        if self._jobs() is None:
            raise RunFailedError("Slurm does not respond; its jobs keep running", "Run tfdet fleet cancel again later.")

    def detach(self) -> None:
        """Leave the jobs in the queue."""

    def _jobs(self) -> list[_Job] | None:
        """Return all jobs of this fleet in the queue."""
        done = _run_command("squeue", "--me", "--noheader", "--array", "--format=%i|%j|%K|%T|%r")
        if done is None:
            return None
        rounds = {made.name: made for made in self._folder.submissions()}
        found = []
        for job, name, place, state, reason in (line.split("|", 4) for line in done.splitlines()):
            if name in rounds:
                task = rounds[name].tasks[int(place) if place.isdigit() else 0]
                found.append(_Job(job, name, task, state, reason))
        return found

    def _end(self, jobs: list[str]) -> None:
        for start in range(0, len(jobs), MAX_ARRAY_SIZE):
            _run_command("scancel", *jobs[start : start + MAX_ARRAY_SIZE])


def _run_command(*command: str) -> str | None:
    """Return its standard output; None if it fails, for example while the controller does not respond."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


class Local:
    """Processes of this host: one at a time, or as many as max_parallel."""

    poll_seconds = 0.5

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder

    def free_slots(self, flying: JobsInFlight) -> int:
        return (self._folder.fleet.max_parallel or 1) - len(flying.all)

    def submit(self, made: Submission, want: ResourceRequest) -> list[str]:
        os.environ[task.SUBMITTER_GPUS] = os.environ.get(task.GPUS, task.ALL)  # submitit hides them from its processes
        before = signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # a terminal sends Ctrl-C to the whole group: we end them in order
        try:
            return _submit(self._folder, "local", made, timeout_min=want.minutes)
        finally:
            signal.signal(signal.SIGINT, before)

    def jobs_in_flight(self) -> JobsInFlight:
        return JobsInFlight(frozenset(), frozenset(task for _, task in self._alive()))

    def cancel_orphans(self) -> None:
        """Nothing to do: a local submission is recorded at once."""

    def cancel(self) -> None:
        for process, _ in self._alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def detach(self) -> None:
        self.cancel()

    def _alive(self) -> Iterator[tuple[int, int]]:
        for made in self._folder.submissions():
            for job, number in zip(self._folder.job_ids(made) or [], made.tasks, strict=False):
                if job.isdecimal() and self._is_ours(int(job)):
                    yield int(job), number

    def _is_ours(self, process: int) -> bool:
        """Return whether the process is a task of this fleet: its number may have been reused."""
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return str(self._folder.path / "logs").encode() in words


def _submit(folder: FleetFolder, cluster: str, made: Submission, **wants: object) -> list[str]:
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
