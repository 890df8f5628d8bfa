"""Progress of a fleet, computed from its folder and its cluster's queue.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfdet.base.errors import ExitCode
from tfdet.fleet.clusters import JobsInFlight
from tfdet.fleet.folder import AttemptEnd, FleetFolder
from tfdet.fleet.tasks import Task

MAX_FAILURES = 3  # failed attempts after which a task is given up
MAX_KILLS = 20  # killed attempts after which a task is given up, if none of them added a record
_DONE = (ExitCode.OK, ExitCode.CONTRADICTED)  # a contradicted claim is a result, not a failure


@dataclass(frozen=True)
class Progress:
    """The state of every task. Tasks are given by their number in the plan.

    given_up: {task: reason}. ready: tasks that can be submitted. jobs_in_flight: None while the cluster does not
    respond. failed_on: {task: machines on which it failed}. attempts: {task: number of attempts that began}.
    """

    tasks: Sequence[Task]
    done: frozenset[int]
    given_up: dict[int, str]
    ready: list[int]
    jobs_in_flight: JobsInFlight | None
    failed_on: dict[int, tuple[str, ...]]
    attempts: dict[int, int]
    seconds_left: float | None

    @property
    def complete(self) -> bool:
        return len(self.done) + len(self.given_up) == len(self.tasks)

    def as_json(self) -> dict[str, Any]:
        jobs = self.jobs_in_flight
        return {
            "tasks": len(self.tasks), "done": len(self.done), "given_up": len(self.given_up),
            "running": None if jobs is None else len(jobs.running - self.done),
            "waiting": None if jobs is None else len(jobs.waiting - self.done),
            "waiting_for": (jobs.waiting_reason or None) if jobs else None,
            "attempts": sum(self.attempts.values()),
            "seconds_left": None if self.seconds_left is None else round(self.seconds_left),
        }  # fmt: skip


def compute_progress(folder: FleetFolder, jobs: JobsInFlight | None) -> Progress:
    """Compute the progress. jobs: from the cluster's queue, None if the cluster does not respond."""
    ends, starts, tasks = folder.ended_attempts(), folder.started_attempts(), folder.fleet.tasks
    done = frozenset(task for task, task_ends in ends.items() if any(end.code in _DONE for end in task_ends))
    # A submission without IDs: the submitter ended before the cluster had answered.
    submissions = [submission for submission in folder.submissions() if folder.job_ids(submission) is not None]
    submission_counts = Counter(task for submission in submissions for task in submission.tasks)
    given_up = {}
    for task in range(len(tasks)):
        if task not in done:
            reason = _give_up_reason(folder, ends.get(task, []), starts.get(task, []), submission_counts[task])
            if reason is not None:
                given_up[task] = reason
    in_flight = jobs.all if jobs else frozenset()
    return Progress(
        tasks=tasks,
        done=done,
        given_up=given_up,
        ready=[task for task in range(len(tasks)) if task not in done | in_flight and task not in given_up],
        jobs_in_flight=jobs,
        failed_on={task: tuple(sorted({end.node for end in _failures(task_ends)})) for task, task_ends in ends.items()},
        attempts={task: len(names) for task, names in starts.items()},
        seconds_left=_seconds_left(tasks, done, given_up, ends, jobs),
    )


def _failures(ends: list[AttemptEnd]) -> list[AttemptEnd]:
    return [end for end in ends if end.code not in (*_DONE, ExitCode.INTERRUPTED)]


def _give_up_reason(folder: FleetFolder, ends: list[AttemptEnd], attempts: list[str], submitted: int) -> str | None:
    """Return why a task is not retried; None if it is."""
    failures, started = _failures(ends), len(attempts)
    if any(end.code == ExitCode.USAGE for end in failures) or len(failures) >= MAX_FAILURES:
        return failures[-1].error or f"the suite ended with {failures[-1].code}"
    if started - len(failures) >= MAX_KILLS and not folder.made_progress(attempts, MAX_KILLS):
        return f"killed {started - len(failures)} times"
    if submitted - started >= MAX_KILLS:
        return (
            f"submitted {submitted} times, {started or 'none'} of which started: see the output of its machines in logs"
        )
    return None


def _seconds_left(
    tasks: Sequence[Task], done: frozenset[int], given_up: dict[int, str], ends: dict[int, list[AttemptEnd]],
    jobs: JobsInFlight | None,
) -> float | None:  # fmt: skip
    """Return the expected seconds left on as many machines as run now; None if none run."""
    if jobs is None or not jobs.running:
        return None
    expected = sum(tasks[task].seconds for task in done)
    actual = sum(ends[task][-1].seconds for task in done)
    rest = sum(task.seconds for number, task in enumerate(tasks) if number not in done and number not in given_up)
    return rest * (actual / expected if done else 1.0) / len(jobs.running)
