"""Clusters that run a fleet's tasks: Slurm, or processes of this host; both use submitit.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.
"""

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
_TIME_MARGIN = 3  # factor on the expected time: machines differ, and may have to build the environment first
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
    """A cluster that runs the tasks of one fleet."""

    poll_seconds: float  # between two queries of its queue

    def submit(self, submission: Submission, request: ResourceRequest) -> list[str]:
        """Submit the tasks; return the cluster's job IDs. RunFailedError if it accepts none."""
        ...

    def free_slots(self, jobs: JobsInFlight) -> int:
        """Return how many more tasks may be submitted."""
        ...

    def jobs_in_flight(self) -> JobsInFlight | None:
        """Return the tasks in the queue; None if the cluster does not respond."""
        ...

    def cancel_orphans(self) -> None:
        """Cancel jobs without a recorded submission.

        Only the submitting process may call this: an active submission is not recorded yet, either.
        """
        ...

    def cancel(self) -> None:
        """Cancel all submitted jobs. RunFailedError if the cluster does not respond."""
        ...

    def detach(self) -> None:
        """Handle the end of the watching process by Ctrl-C."""
        ...


def connect(name: str, folder: FleetFolder) -> Cluster:
    """Return the cluster of this name for a fleet; UsageError if it is not available on this machine."""
    return Slurm(folder) if name == "slurm" else Local(folder)


def default_cluster() -> ClusterKind:
    return "slurm" if shutil.which("sbatch") else "local"


def requested_minutes(seconds: float, attempts: int) -> int:
    """Return the time limit to request: doubled after each attempt, whose limit may have been too short."""
    return max(_MIN_MINUTES, round(_TIME_MARGIN * seconds / 60) << min(attempts, 4))


class _Job(NamedTuple):
    """A line of squeue.  job: its ID.  name: of its submission.  reason: why it waits."""

    job: str
    name: str
    task: int
    state: str
    reason: str


class Slurm:
    """A Slurm cluster.  It finds the fleet's jobs by their name, because the submitting process may have ended."""

    poll_seconds = 10.0

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder
        if shutil.which("squeue") is None:
            raise UsageError(
                "Slurm is not installed on this machine", "Run this where sbatch is, or pass --cluster local."
            )

    def free_slots(self, jobs: JobsInFlight) -> int:
        return 1_000_000  # no limit: tasks wait in the queue

    def submit(self, submission: Submission, request: ResourceRequest) -> list[str]:
        fleet = self._folder.fleet
        exclude = {"exclude": ",".join(request.excluded_nodes)} if request.excluded_nodes else {}
        gres = f"gpu:{fleet.options.gpu}:1" if fleet.options.gpu else "gpu:1"
        gpu = {"slurm_gres": gres} if fleet.options.device == "gpu" else {}
        return _submit(
            self._folder, "slurm", submission, name=submission.name, timeout_min=request.minutes,
            slurm_mem=f"{fleet.options.mebibytes}MB", slurm_array_parallelism=fleet.max_parallel or MAX_ARRAY_SIZE,
            slurm_use_srun=False, slurm_additional_parameters={"requeue": True, **fleet.sbatch_options, **exclude},
            **gpu,
        )  # fmt: skip

    def jobs_in_flight(self) -> JobsInFlight | None:
        """Return the tasks in the queue, without jobs that have finished or that Slurm holds."""
        jobs = self._jobs()
        if jobs is None:
            return None
        active = [job for job in jobs if job.state not in _FINISHED_STATES and "held" not in job.reason]
        waiting = [job for job in active if job.state != "RUNNING"]
        reasons = Counter(job.reason for job in waiting if job.reason != "None").most_common(1)
        return JobsInFlight(
            frozenset(job.task for job in waiting),
            frozenset(job.task for job in active if job.state == "RUNNING"),
            reasons[0][0] if reasons else "",
        )

    def cancel_orphans(self) -> None:
        """Cancel jobs whose submitter died before it recorded them, and jobs that Slurm holds after a failed start."""
        submissions = self._folder.submissions()
        recorded = {submission.name for submission in submissions if self._folder.job_ids(submission) is not None}
        self._end([job.job for job in self._jobs() or [] if job.name not in recorded or "held" in job.reason])

    def cancel(self) -> None:
        self._end([job.job for job in self._jobs() or []])
        if self._jobs() is None:
            raise RunFailedError("Slurm does not respond; its jobs keep running", "Run tfdet fleet cancel again later.")

    def detach(self) -> None:
        """Leave the jobs in the queue."""

    def _jobs(self) -> list[_Job] | None:
        """Return all jobs of this fleet in the queue; None if Slurm does not respond."""
        output = _run_command("squeue", "--me", "--noheader", "--array", "--format=%i|%j|%K|%T|%r")
        if output is None:
            return None
        submissions = {submission.name: submission for submission in self._folder.submissions()}
        jobs = []
        for job, name, index, state, reason in (line.split("|", 4) for line in output.splitlines()):
            if name in submissions:
                task = submissions[name].tasks[int(index) if index.isdigit() else 0]
                jobs.append(_Job(job, name, task, state, reason))
        return jobs

    def _end(self, jobs: list[str]) -> None:
        for start in range(0, len(jobs), MAX_ARRAY_SIZE):
            _run_command("scancel", *jobs[start : start + MAX_ARRAY_SIZE])


def _run_command(*command: str) -> str | None:
    """Run a command and return its standard output; None if it fails, e.g. because the controller does not respond."""
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return process.stdout if process.returncode == 0 else None


class Local:
    """This host as a cluster: it runs one process at a time, or as many as max_parallel."""

    poll_seconds = 0.5

    def __init__(self, folder: FleetFolder) -> None:
        self._folder = folder

    def free_slots(self, jobs: JobsInFlight) -> int:
        return (self._folder.fleet.max_parallel or 1) - len(jobs.all)

    def submit(self, submission: Submission, request: ResourceRequest) -> list[str]:
        os.environ[task.SUBMITTER_GPUS] = os.environ.get(task.GPUS, task.ALL)  # submitit hides them from its processes
        # The processes inherit this: a terminal sends Ctrl-C to the whole group, but `detach` ends them.
        old_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return _submit(self._folder, "local", submission, timeout_min=request.minutes)
        finally:
            signal.signal(signal.SIGINT, old_handler)

    def jobs_in_flight(self) -> JobsInFlight:
        return JobsInFlight(frozenset(), frozenset(task for _, task in self._running_tasks()))

    def cancel_orphans(self) -> None:
        """Nothing to do: a local submission is recorded at once."""

    def cancel(self) -> None:
        for process, _ in self._running_tasks():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def detach(self) -> None:
        self.cancel()

    def _running_tasks(self) -> Iterator[tuple[int, int]]:
        """Yield (process ID, task number) of the running tasks."""
        for submission in self._folder.submissions():
            for job, number in zip(self._folder.job_ids(submission) or [], submission.tasks, strict=False):
                if job.isdecimal() and self._is_own_process(int(job)):
                    yield int(job), number

    def _is_own_process(self, process: int) -> bool:
        """Return whether the process is a task of this fleet: its ID may have been reused."""
        try:
            arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return str(self._folder.path / "logs").encode() in arguments


def _submit(folder: FleetFolder, cluster: str, submission: Submission, **parameters: object) -> list[str]:
    """Submit the tasks by submitit; return the job IDs. RunFailedError if the cluster accepts none."""
    import submitit
    from submitit.core.utils import UncompletedJobError

    executor = submitit.AutoExecutor(folder=folder.path / "logs", cluster=cluster)
    try:
        executor.update_parameters(**parameters)
        jobs = executor.map_array(task.run, [str(folder.path)] * len(submission.tasks), submission.tasks)
    except (UncompletedJobError, subprocess.SubprocessError, RuntimeError, OSError) as error:
        message = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise RunFailedError(
            f"{cluster} accepted no job: {message.strip()}", "Check that it responds, then run with --resume."
        ) from error
    return [job.job_id for job in jobs]
