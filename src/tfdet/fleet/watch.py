"""The loop that submits a fleet's tasks, observes the cluster, and resubmits lost tasks, until all are finished.

The whole state is in the fleet's folder and the cluster's queue: if the watching process is killed, another one can
continue.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from filelock import FileLock, Timeout

from tfdet.base import console
from tfdet.base.errors import RunFailedError, UsageError
from tfdet.fleet.clusters import MAX_ARRAY_SIZE, Cluster, ResourceRequest, requested_minutes
from tfdet.fleet.folder import FleetFolder
from tfdet.fleet.progress import Progress, compute_progress


def watch(
    folder: FleetFolder, cluster: Cluster, report: Callable[[Progress], None], poll_seconds: float | None = None
) -> Progress:
    """Watch the fleet until every task is done or given up, or the fleet is cancelled; return the last progress.

    report: called after each poll.  UsageError if another process watches: both would submit the same tasks.
    """
    lock = FileLock(folder.path / "watched.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError("another tfdet already watches this fleet", "See tfdet fleet status.") from None
    try:
        return _watch(folder, cluster, report, poll_seconds or cluster.poll_seconds)
    except KeyboardInterrupt:
        cluster.detach()
        raise
    finally:
        lock.release()


def _watch(folder: FleetFolder, cluster: Cluster, report: Callable[[Progress], None], poll_seconds: float) -> Progress:
    has_submitted = bool(folder.submissions())
    while True:
        cluster.cancel_orphans()  # jobs without a recorded submission
        jobs = cluster.jobs_in_flight()
        progress = compute_progress(folder, jobs)
        report(progress)
        if folder.cancelled:
            cluster.cancel()  # jobs that were submitted during the cancellation
            return progress
        if progress.complete:
            return progress
        if jobs is not None and progress.ready:
            try:
                _submit_ready(folder, cluster, progress, cluster.free_slots(jobs))
                has_submitted = True
            except RunFailedError as error:
                if not has_submitted:  # the cluster never accepted a job, so another try would not help
                    raise
                console.print_note(f"{error.cause}; trying again")
        time.sleep(poll_seconds)


def _submit_ready(folder: FleetFolder, cluster: Cluster, progress: Progress, free_slots: int) -> None:
    for request, tasks in _group_by_request(progress, progress.ready[: max(0, free_slots)]).items():
        for start in range(0, len(tasks), MAX_ARRAY_SIZE):
            if folder.cancelled:
                return
            submission = folder.add_submission(tasks[start : start + MAX_ARRAY_SIZE])
            try:
                folder.record_submission(submission, cluster.submit(submission, request))
            except RunFailedError:
                if not request.excluded_nodes:
                    raise
                # Perhaps no other machine fits: retry without excluding those on which the tasks failed.
                fallback = ResourceRequest(request.minutes)
                folder.record_submission(submission, cluster.submit(submission, fallback))


def _group_by_request(progress: Progress, ready: list[int]) -> dict[ResourceRequest, list[int]]:
    """Group the tasks by the machines to exclude: all tasks of a job array have the same request."""
    by_excluded: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for task in ready:
        by_excluded[progress.failed_on.get(task, ())].append(task)
    return {
        ResourceRequest(max(_time_limit(progress, task) for task in tasks), excluded_nodes): tasks
        for excluded_nodes, tasks in by_excluded.items()
    }


def _time_limit(progress: Progress, task: int) -> int:
    return requested_minutes(progress.tasks[task].seconds, progress.attempts.get(task, 0))
