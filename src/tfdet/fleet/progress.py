"""Progress of a fleet, computed from its folder and its cluster's queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfdet.base.errors import ExitCode
from tfdet.fleet.clusters import JobsInFlight
from tfdet.fleet.folder import AttemptEnd, FleetFolder
from tfdet.fleet.tasks import Task

MAX_FAILURES = 3  # after so many a task is given up
MAX_KILLS = 20  # likewise, if none of so many killed attempts added a record
_DONE = (ExitCode.OK, ExitCode.CONTRADICTED)


@dataclass(frozen=True)
class Progress:
    """The state of every task. Tasks are given by their number in the plan.

    given_up: {task: reason}. ready: tasks that wait for submission. jobs_in_flight: None while the cluster does not
    respond. failed_on: {task: machines on which it failed}. attempts: {task: how many began}.
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
        flying = self.jobs_in_flight
        return {
            "tasks": len(self.tasks), "done": len(self.done), "given_up": len(self.given_up),
            "running": None if flying is None else len(flying.running - self.done),
            "waiting": None if flying is None else len(flying.waiting - self.done),
            "waiting_for": (flying.waiting_reason or None) if flying else None,
            "attempts": sum(self.attempts.values()),
            "seconds_left": None if self.seconds_left is None else round(self.seconds_left),
        }  # fmt: skip


def compute_progress(folder: FleetFolder, flying: JobsInFlight | None) -> Progress:
    ended, begun, tasks = folder.ended_attempts(), folder.started_attempts(), folder.fleet.tasks
    done = frozenset(task for task, some in ended.items() if any(one.code in _DONE for one in some))
    sent = Counter(task for made in folder.submissions() if folder.job_ids(made) is not None for task in made.tasks)
    given_up = {}
    for task in range(len(tasks)):
        why = None if task in done else _give_up_reason(folder, ended.get(task, []), begun.get(task, []), sent[task])
        if why is not None:
            given_up[task] = why
    under_way = flying.all if flying else frozenset()
    return Progress(
        tasks=tasks,
        done=done,
        given_up=given_up,
        ready=[task for task in range(len(tasks)) if task not in done | under_way and task not in given_up],
        jobs_in_flight=flying,
        failed_on={task: tuple(sorted({one.node for one in _failures(some)})) for task, some in ended.items()},
        attempts={task: len(some) for task, some in begun.items()},
        seconds_left=_seconds_left(tasks, done, given_up, ended, flying),
    )


def _failures(ended: list[AttemptEnd]) -> list[AttemptEnd]:
    return [one for one in ended if one.code not in (*_DONE, ExitCode.INTERRUPTED)]


def _give_up_reason(folder: FleetFolder, ended: list[AttemptEnd], names: list[str], sent: int) -> str | None:
    """Return why a task is not retried; None if it is."""
    failures, begun = _failures(ended), len(names)
    if any(one.code == ExitCode.USAGE for one in failures) or len(failures) >= MAX_FAILURES:
        return failures[-1].error or f"the suite ended with {failures[-1].code}"
    if begun - len(failures) >= MAX_KILLS and not folder.made_progress(names, MAX_KILLS):
        return f"killed {begun - len(failures)} times"
    if sent - begun >= MAX_KILLS:
        return f"submitted {sent} times, {begun or 'none'} of which started: see the output of its machines in logs"
    return None


def _seconds_left(
    tasks: Sequence[Task], done: frozenset[int], given_up: dict[int, str], ended: dict[int, list[AttemptEnd]],
    flying: JobsInFlight | None,
) -> float | None:  # fmt: skip
    """Return the expected seconds left on as many machines as run now; None if none run."""
    if flying is None or not flying.running:
        return None
    expected = sum(tasks[task].seconds for task in done)
    took = sum(ended[task][-1].seconds for task in done)
    rest = sum(one.seconds for task, one in enumerate(tasks) if task not in done and task not in given_up)
    return rest * (took / expected if done else 1.0) / len(flying.running)
